"""Pipeline schedules as explicit tables of operations, and their replay: time, waiting and memory of every rank."""
