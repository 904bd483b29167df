"""One campaign, many hands: threads that tell one learner, processes that save into one file."""

import copy
import pickle
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from saccade._core.errors import InvalidInput
from saccade.active import ActiveLearner
from saccade.active.one_at_a_time import alone_in
from tests.active.test_learner import X, assert_same, campaign, y


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Run work(0), work(1), … at once; an error in one of them is raised."""
    errors, start = list[BaseException](), threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_every_answer_of_eight_threads_is_kept() -> None:
    learner = ActiveLearner(X, random_state=0)
    in_threads(8, lambda t: [learner.tell([row], [y[row]]) for row in range(10 * t, 10 * t + 10)])
    assert learner.labels == {row: y[row] for row in range(80)}
    assert len(learner.history) == 80
    alone = ActiveLearner(X, random_state=0)
    alone.tell(list(learner.labels), list(learner.labels.values()))
    np.testing.assert_allclose(learner.field.mean, alone.field.mean, atol=1e-8)


def test_threads_that_do_all_at_once(tmp_path: Path) -> None:
    """Tell, undo, ask, fit, save and copy: no error, no answer lost, and the posterior is that of the labels."""
    learner = campaign()
    before = learner.labels
    rows = np.setdiff1d(np.arange(300), list(before))[:20]

    def work(t: int) -> None:
        for k in range(5):
            if t < 4:
                learner.tell([rows[5 * t + k]], [y[rows[5 * t + k]]])
            else:
                asked = learner.ask(3)
                assert learner.model.classes_.size == learner.classes.size == 10
                assert asked.size == 3
                learner.save(tmp_path / "c.saccade")
                one = copy.deepcopy(learner)
                assert len(one.labels) == len(before) + len(one.history) - 3

    in_threads(6, work)
    assert learner.labels == before | {row: y[row] for row in rows.tolist()}
    learner.save(tmp_path / "c.saccade")
    assert_same(ActiveLearner.load(tmp_path / "c.saccade", X), learner)


def test_copies_and_pickles_go_on_as_the_learner() -> None:
    learner = campaign()
    for again in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert_same(again, learner)
        again.tell([250], [3])
        assert 250 not in learner.labels
        again.undo()
        assert_same(again, learner)


def test_a_file_that_somebody_else_wrote_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "c.saccade"
    campaign().save(path)
    one, other = ActiveLearner.load(path, X), ActiveLearner.load(path, X)
    one.tell([200], [3])
    one.save(path)
    one.tell([201], [4])
    one.save(path)  # its own
    other.tell([202], [5])
    whole = path.read_bytes()
    with pytest.raises(InvalidInput, match="may hold answers of somebody else") as refused:
        other.save(path)
    assert path.read_bytes() == whole
    other.save(tmp_path / "d.saccade")
    lines = re.findall(r"^    (.*)$", str(refused.value), re.M)  # the error says how to keep both
    exec("\n".join(lines), {"ActiveLearner": ActiveLearner, "X": X, "learner": other})
    both = ActiveLearner.load(path, X)
    assert [both.labels[row] for row in (200, 201, 202)] == [3, 4, 5]
    assert len(both.labels) == len(one.labels) + 1


def test_answers_taken_back_replace_the_own_file(tmp_path: Path) -> None:
    learner = campaign()
    learner.save(tmp_path / "c.saccade")
    learner.undo()
    learner.save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", X)
    again.undo()
    again.save(tmp_path / "c.saccade")
    assert len(ActiveLearner.load(tmp_path / "c.saccade", X).history) == 1


@pytest.mark.parametrize("content", ["another campaign", "a text", "nothing"])
def test_a_file_that_was_never_read_is_not_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "c.saccade"
    if content == "another campaign":
        campaign(1).save(path)
    else:
        path.write_text("my notes" if content == "a text" else "")
    whole = path.read_bytes()
    with pytest.raises(InvalidInput, match="Nothing was saved"):
        campaign().save(path)
    assert path.read_bytes() == whole
    assert [file.name for file in tmp_path.iterdir()] == ["c.saccade"]


def test_one_at_a_time_in_a_folder(tmp_path: Path) -> None:
    """Eight threads add one to a number in a file, with time to disturb each other."""
    count = tmp_path / "count"
    count.write_text("0")

    def add(_: int) -> None:
        for _ in range(5):
            with alone_in(tmp_path):
                number = int(count.read_text())
                time.sleep(0.001)
                count.write_text(str(number + 1))

    in_threads(8, add)
    assert count.read_text() == "40"
    with alone_in(tmp_path / "nowhere"):  # who writes there says what is wrong
        pass


def test_a_save_waits_for_another_one(tmp_path: Path) -> None:
    learner, done = campaign(1), threading.Event()

    def save() -> None:
        learner.save(tmp_path / "c.saccade")
        done.set()

    with alone_in(tmp_path):
        thread = threading.Thread(target=save)
        thread.start()
        assert not done.wait(0.5)
    thread.join(60)
    assert done.is_set()


WORKER = """
import sys
import numpy as np
from sklearn.datasets import load_digits
from saccade._core.errors import InvalidInput
from saccade.active import ActiveLearner

path, number = sys.argv[1], int(sys.argv[2])
X, y = (a[:60] for a in load_digits(return_X_y=True))
learner = ActiveLearner.load(path, X)
sys.stdin.readline()  # all have loaded
for row in range(10 * number, 10 * number + 10, 2):
    learner.tell([row, row + 1], y[[row, row + 1]])
    while True:
        try:
            learner.save(path)
            break
        except InvalidInput:
            both = ActiveLearner.load(path, X)
            new = {row: label for row, label in learner.labels.items() if row not in both.labels}
            both.tell(list(new), list(new.values()))
            learner = both
"""


def test_processes_that_merge_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.saccade"
    few, truth = X[:60], y[:60]
    ActiveLearner(few, audit=0.0).save(path)
    command = [sys.executable, "-c", WORKER, str(path)]
    workers = [subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, text=True) for n in range(3)]
    try:
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.close()
        assert [worker.wait(timeout=300) for worker in workers] == [0, 0, 0]
    finally:
        for worker in workers:
            worker.kill()
    assert ActiveLearner.load(path, few).labels == {row: truth[row] for row in range(30)}
    assert [file.name for file in tmp_path.iterdir()] == ["c.saccade"]
