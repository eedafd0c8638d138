"""The only room with torch: a small transformer under a layout, run and measured."""
