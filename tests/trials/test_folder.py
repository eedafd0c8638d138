"""The names in a trial folder, and what the end of a launcher's log says."""

from autotune.trials.folder import LauncherReport, clear_trial, read_launcher_report, recorded_processes
from autotune.trials.processes import ProcessId

# Written by torchrun 2.13 over a worker that raises; the middle of torchrun's own traceback is cut.
CRASHED = """\
Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded
*****************************************
Traceback (most recent call last):
  File "/tmp/w.py", line 5, in <module>
    raise RuntimeError("boom in rank 1")
RuntimeError: boom in rank 1
W1201 04:34:07.008000 5866 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 5871 closing signal
E1201 04:34:07.012000 5866 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 1
Traceback (most recent call last):
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
w FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-12-01_04:34:07
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 5871)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 5871
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-12-01_04:34:07
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 5872)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def test_torchruns_report_gives_the_first_failure_and_the_ranks_last_words(tmp_path):
    (tmp_path / "stderr.log").write_text(CRASHED)

    got = read_launcher_report(tmp_path)

    assert got == LauncherReport(last_line="RuntimeError: boom in rank 1", rank=1, exit_code=1)


def test_torchruns_own_words_are_not_taken_for_a_ranks(tmp_path):
    only_torchrun = CRASHED[CRASHED.index("W1201") :]
    (tmp_path / "stderr.log").write_text(only_torchrun)

    assert read_launcher_report(tmp_path) == LauncherReport(last_line="", rank=1, exit_code=1)


def test_a_log_without_torchrun_gives_its_last_line_with_words(tmp_path):
    (tmp_path / "stderr.log").write_text("first\nValueError: no\n\n=====\n")

    assert read_launcher_report(tmp_path) == LauncherReport(last_line="ValueError: no", rank=None, exit_code=None)


def test_no_log_says_nothing(tmp_path):
    assert read_launcher_report(tmp_path) == LauncherReport(last_line="", rank=None, exit_code=None)


def test_the_end_of_a_huge_log_is_enough(tmp_path):
    (tmp_path / "stderr.log").write_text("noise\n" * 100_000 + CRASHED)

    assert read_launcher_report(tmp_path).last_line == "RuntimeError: boom in rank 1"


def test_only_whole_records_of_processes_are_believed(tmp_path):
    (tmp_path / "rank-0.pid").write_text('{"pid": 12, "start_time": 34}')
    (tmp_path / "rank-1.pid").write_text('{"pid": 12')
    (tmp_path / "rank-2.pid").write_text('{"pid": 12}')
    (tmp_path / "rank-3.pid").write_text("12")
    (tmp_path / "rank-x.pid").write_text('{"pid": 1, "start_time": 1}')

    assert recorded_processes(tmp_path) == (ProcessId(pid=12, start_time=34),)


def test_a_new_attempt_clears_what_the_last_one_left_and_nothing_else(tmp_path):
    ours = ["rank-0.pid", "rank-11.json", "rank-0.phase", "result.json", "outcome.json", "stdout.log", "stderr.log"]
    for name in [*ours, "trial.json", "notes.txt", "rank-0.json.bak"]:
        (tmp_path / name).write_text("{}")

    clear_trial(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "rank-0.json.bak", "trial.json"]
