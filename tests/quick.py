"""`make quick`: the fast tests only, as measured by the last runs of each.

Every run records in .pytest_cache how long each test took to set up and to run. With `--quick`, a
file is collected if its fixtures are cheap and the files are chosen cheapest first within a budget;
in it, only fast tests run. So the selection keeps itself up to date. Tests that were never measured
run too, as long as there is time, unless they are marked `slow` or use a fixture that starts Godot.
"""

import time
from pathlib import Path

import pytest

KEY = "estragon/durations"
LONGEST_TEST_SEC, LONGEST_SETUP_SEC = 0.5, 2.0
BUDGET_SEC = 80.0
"""For all measured tests together; two processes share them."""
TIME_LIMIT_SEC = 60.0
"""After this, no test is begun that was never measured."""
STARTS_GODOT = {"godot", "drawing"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that were fast last time")


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config, "cache", None) is not None:  # not with -p no:cacheprovider
        config.pluginmanager.register(Quick(config), "estragon-quick")


class Quick:
    """Measures every run, and selects by what was measured."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._started = 0.0
        assert config.cache is not None
        self._cache = config.cache
        # {test: [seconds of setup, seconds of the rest]}
        self._known: dict[str, list[float]] = self._cache.get(KEY, {})
        self._measured: dict[str, list[float]] = {}
        self._files = {name.partition("::")[0] for name in self._known}
        self._chosen = choose(self._known)
        self._chosen_files = {name.partition("::")[0] for name in self._chosen}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if not self._config.getoption("quick"):
            return None
        name = collection_path.relative_to(self._config.rootpath).as_posix()
        return True if name in self._files - self._chosen_files else None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if not self._config.getoption("quick"):
            return
        left_out = [item for item in items if not self._is_quick(item)]
        self._config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._started = self._started or time.monotonic()
        late = time.monotonic() - self._started > TIME_LIMIT_SEC
        if late and item.nodeid not in self._known and self._config.getoption("quick"):
            pytest.skip(f"never measured, and --quick has run for {TIME_LIMIT_SEC:.0f} s")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            return
        seconds = self._measured.setdefault(report.nodeid, [0.0, 0.0])
        seconds[report.when != "setup"] += round(report.duration, 3)

    def pytest_sessionfinish(self) -> None:
        if not hasattr(self._config, "workerinput"):  # xdist's workers report to the main process
            root = self._config.rootpath
            known = self._known | self._measured
            exist = {name for name in known if (root / name.partition("::")[0]).is_file()}
            self._cache.set(KEY, {name: known[name] for name in sorted(exist)})

    def _is_quick(self, item: pytest.Item) -> bool:
        if item.nodeid in self._known:
            return item.nodeid in self._chosen
        fixtures = set(getattr(item, "fixturenames", ()))
        return item.get_closest_marker("slow") is None and not fixtures & STARTS_GODOT


def choose(known: dict[str, list[float]]) -> set[str]:
    """The tests to run; known: seconds of setup and of the rest, by test."""
    files: dict[str, dict[str, list[float]]] = {}
    for name, seconds in known.items():
        files.setdefault(name.partition("::")[0], {})[name] = seconds
    offers: list[tuple[float, set[str]]] = []
    for tests in files.values():
        # A fixture of a module is set up by its first test, whichever that is.
        setup = sum(seconds for seconds, _ in tests.values())
        fast = {name for name, (_, seconds) in tests.items() if seconds <= LONGEST_TEST_SEC}
        if setup <= LONGEST_SETUP_SEC:
            offers.append((setup + sum(tests[name][1] for name in fast), fast))
    chosen: set[str] = set()
    spent = 0.0
    for cost, tests_of_file in sorted(offers, key=lambda offer: offer[0]):
        spent += cost
        if spent > BUDGET_SEC:
            break
        chosen |= tests_of_file
    return chosen
