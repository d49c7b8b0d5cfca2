"""What the integrations do, done: see test.sh, which prepares for it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
WARPLENS = pathlib.Path(os.environ["WARPLENS_BIN"]).resolve()

# An access that walks down a column: a warning.
SLOW = """\
// warplens: block=(32,8) grid=(32,128) n=1024
__global__ void transpose(float* __restrict__ out, const float* __restrict__ in, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}
"""
# The same without.
FAST = SLOW.replace("x * n + y", "y * n + x", 1).replace("transpose", "copy")


class Repository:
    """A git repository in a temporary folder, with warplens on the PATH."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="warplens-integrations-"))
        self.top = self.folder / "repository"
        tools = self.folder / "bin"
        for made in (self.top, tools, self.folder / "home"):
            made.mkdir()
        (tools / "warplens").symlink_to(WARPLENS)
        self.environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "LANG": "C.UTF-8",
        }
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "A Name")
        self.git("config", "user.email", "name@example.org")

    def write(self, name, text):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, command, **environment):
        return subprocess.run(
            command,
            cwd=self.top,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def git(self, *arguments):
        done = self.run(["git", *arguments])
        assert done.returncode == 0, done.stderr

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "A change")

    def bash(self, text, **environment):
        # As GitHub runs the steps of a composite action.
        script = self.folder / "step.sh"
        script.write_text(text)
        flags = ["--noprofile", "--norc", "-eo", "pipefail"]
        return self.run(["bash", *flags, str(script)], **environment)

    def remove(self):
        shutil.rmtree(self.folder)


def action_steps(repository, inputs):
    """Runs the steps of action.yml as a runner does; gives each step's status and output, and the job's summary."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    values = {name: str(about["default"]) for name, about in action["inputs"].items()}
    assert set(inputs) <= set(values), inputs
    values.update(inputs)
    summary = repository.folder / "summary.md"
    summary.write_text("")
    told, failed = {}, False
    for step in action["runs"]["steps"]:
        condition = step.get("if", "")
        wanted = [part for part in condition.split(" && ") if part not in ("", "always()")]
        for part in wanted:
            name = part.removeprefix("inputs.").removesuffix(" != ''")
            assert part == f"inputs.{name} != ''" and name in values, part
        if any(values[part[len("inputs.") : -len(" != ''")]] == "" for part in wanted):
            continue
        if failed and "always()" not in condition:
            continue
        environment = {}
        for name, value in step.get("env", {}).items():
            key = value.removeprefix("${{ inputs.").removesuffix(" }}")
            assert value == "${{ inputs." + key + " }}" and key in values, value
            environment[name] = values[key]
        done = repository.bash(
            step["run"],
            GITHUB_STEP_SUMMARY=str(summary),
            GITHUB_ACTION_PATH=str(ROOT),
            **environment,
        )
        told[step["name"]] = done
        failed = failed or done.returncode != 0
    return told, failed, summary.read_text()


def test_action_tells_what_it_finds(repository):
    repository.write("src/k.cu", FAST)
    repository.commit()
    told, failed, _ = action_steps(repository, {"paths": "src", "sarif": "out.sarif"})
    assert not failed, {name: (one.stdout, one.stderr) for name, one in told.items()}
    assert list(told) == ["Install", "SARIF", "Check"]
    assert re.search(r"^warplens \d", told["Install"].stdout, re.M), told["Install"].stdout

    repository.write("src/k.cu", SLOW)
    told, failed, _ = action_steps(repository, {"paths": "src other", "sarif": "out.sarif"})
    assert failed and told["SARIF"].returncode == 0 and told["Check"].returncode == 1
    assert "::warning file=src/k.cu,line=4," in told["Check"].stdout, told["Check"].stdout
    log = json.loads((repository.top / "out.sarif").read_text())
    assert any(result["ruleId"] == "mem/column-walk" for result in log["runs"][0]["results"])

    # What the baseline knows fails no run, nor below the level.
    done = repository.run(["warplens", "check", "src", "--write-baseline", "known.json"])
    assert done.returncode == 0, done.stderr
    _, failed, _ = action_steps(repository, {"paths": "src", "baseline": "known.json"})
    assert not failed
    _, failed, _ = action_steps(repository, {"paths": "src", "fail-on": "error"})
    assert not failed


def test_action_says_what_a_change_costs(repository):
    repository.write("k.cu", FAST)
    repository.commit()
    repository.write("k.cu", FAST.replace("out[y * n + x]", "out[x * n + y]"))
    inputs = {"diff-base": "HEAD", "fail-on": "error", "gpu": "h100-sxm5"}
    _, failed, summary = action_steps(repository, inputs)
    assert not failed and "copy" in summary, summary
    told, failed, _ = action_steps(repository, {**inputs, "fail-on-regression": "10"})
    assert failed and told["Compare"].returncode == 1 and told["Check"].returncode == 0
    told, failed, _ = action_steps(repository, {**inputs, "diff-base": "no-such-revision"})
    assert failed and told["Compare"].returncode == 2


def test_action_fails_on_bad_input(repository):
    told, failed, _ = action_steps(repository, {"gpu": "no-such-gpu", "sarif": "out.sarif"})
    assert failed and told["SARIF"].returncode != 0 and told["Check"].returncode == 2
    # What an input says is a value, never a command.
    inputs = {"paths": "$(touch pwned) `touch pwned`", "gpu": '"; touch pwned; "'}
    _, failed, _ = action_steps(repository, inputs)
    assert failed and not (repository.top / "pwned").exists()


def test_gitlab_job(repository):
    job = yaml.safe_load((ROOT / "integrations/gitlab.yml").read_text())["warplens"]
    variables = {name: str(value) for name, value in job["variables"].items()}
    script = "\n".join([*job["before_script"], *job["script"]])
    repository.write("src/k.cu", FAST)
    repository.commit()
    done = repository.bash(script, **variables)
    assert done.returncode == 0, done.stderr
    report = repository.top / "gl-code-quality-report.json"
    assert all(one["severity"] != "major" for one in json.loads(report.read_text()))

    slow = FAST.replace("out[y * n + x]", "out[x * n + y]")
    repository.write("src/k.cu", slow)
    done = repository.bash(script, **variables)
    assert done.returncode == 1, done.stderr
    found = json.loads(report.read_text())
    major = [one for one in found if one["severity"] == "major"]
    assert major[0]["location"] == {"path": "src/k.cu", "lines": {"begin": 4, "end": 4}}, found
    prints = [one["fingerprint"] for one in found]
    assert len(set(prints)) == len(prints)

    variables["WARPLENS_FAIL_ON"] = "error"
    done = repository.bash(script, CI_MERGE_REQUEST_DIFF_BASE_SHA="HEAD", **variables)
    assert done.returncode == 0 and "copy" in done.stdout, (done.stdout, done.stderr)
    variables["WARPLENS_FAIL_ON_REGRESSION"] = "10"
    done = repository.bash(script, CI_MERGE_REQUEST_DIFF_BASE_SHA="HEAD", **variables)
    assert done.returncode == 1, done.stderr


def test_pre_commit_hook(repository):
    # The hook is taken from a repository: one with this one's manifest as it is in the working tree.
    hooks = repository.folder / "hooks"
    hooks.mkdir()
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "Hooks"]):
        named = ["-c", "user.name=A Name", "-c", "user.email=name@example.org"]
        done = repository.run(["git", "-C", str(hooks), *named, *arguments])
        assert done.returncode == 0, done.stderr
    repository.write("src/k.cu", FAST)
    repository.write("notes.txt", SLOW)
    repository.commit()
    hook = ["pre-commit", "try-repo", str(hooks), "warplens", "--all-files", "--verbose"]
    done = repository.run(hook)
    assert done.returncode == 0, done.stdout + done.stderr
    repository.write("src/k.cu", SLOW)
    repository.commit()
    done = repository.run(hook)
    assert done.returncode == 1 and "mem/column-walk" in done.stdout, done.stdout + done.stderr
    assert "notes.txt" not in done.stdout


def test_sarif_is_what_its_schema_asks_for(repository):
    for folder in ("kernels", "corpus"):
        shutil.copytree(ROOT / "tests" / folder, repository.top / folder)
    repository.write("broken.cu", "__global__ void k(int* p) { p[0] = ; }\n")
    repository.write("warplens.toml", 'gpu = "no-such-gpu"\n')
    done = repository.run(["warplens", "check", ".", "--format", "sarif"])
    assert done.returncode == 1, done.stderr
    results = json.loads(done.stdout)["runs"][0]["results"]
    assert any("fixes" in result for result in results)
    schema = json.loads(pathlib.Path(os.environ["SARIF_SCHEMA"]).read_text())
    assert "2.1.0" in schema["properties"]["version"]["enum"]
    checker = jsonschema.validators.validator_for(schema)(schema)
    wrong = [f"{error.json_path}: {error.message[:200]}" for error in checker.iter_errors(json.loads(done.stdout))]
    assert not wrong, wrong[:5]
    # A log that is wrong is not let through.
    assert list(checker.iter_errors({**json.loads(done.stdout), "version": "2.0.0"}))


def test_yaml_is_what_its_schemas_ask_for(_repository):
    valid("--builtin-schema", "vendor.github-actions", ROOT / "action.yml")
    valid("--builtin-schema", "vendor.gitlab-ci", ROOT / "integrations/gitlab.yml")
    for workflow in sorted((ROOT / ".github/workflows").glob("*.yml")):
        valid("--builtin-schema", "vendor.github-workflows", workflow)
    forms = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) == 5, forms
    for form in forms:
        kind = "config" if form.stem == "config" else "forms"
        valid("--builtin-schema", f"vendor.github-issue-{kind}", form)
    done = subprocess.run(
        ["pre-commit", "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def valid(*arguments):
    command = ["check-jsonschema", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def main():
    passed = failed = 0
    for name, test in sorted(globals().items()):
        if not name.startswith("test_"):
            continue
        repository = Repository()
        try:
            test(repository)
        except Exception as error:  # every test is told, then all are counted
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        else:
            passed += 1
            print(f"{name}: ok")
        finally:
            repository.remove()
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
