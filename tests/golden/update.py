"""Rewrites the golden files: `python -m tests.golden.update`. A changed prediction belongs into CHANGELOG."""

from tests.golden.breakdowns import DATA, rendered

if __name__ == "__main__":
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_text(rendered(), encoding="utf-8")
