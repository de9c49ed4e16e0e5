"""A page in headless Chromium: what it logs, what it fetches, what a script finds in it."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

_WITNESS = """
<script>
window.trouble = [];
addEventListener("error", (event) => trouble.push("error: " + event.message));
addEventListener("unhandledrejection", (event) => trouble.push("rejection: " + event.reason));
addEventListener("securitypolicyviolation", (event) => trouble.push("refused: " + event.blockedURI));
for (const level of ["error", "warn"]) {
  const said = console[level];
  console[level] = (...words) => {
    trouble.push(level + ": " + words.join(" "));
    said.apply(console, words);
  };
}
window.alert = (words) => trouble.push("alert: " + words);
</script>
"""

_ASK = """
<script>
(async () => {
  let found;
  try { found = await (%(script)s)(); } catch (error) { found = {failed: String(error)}; }
  const fetched = performance.getEntriesByType("resource").map((each) => each.name);
  const answer = document.createElement("pre");
  answer.id = "answer";
  answer.textContent = JSON.stringify({found, trouble, fetched});
  document.body.append(answer);
})();
</script>
"""


_FOUND = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Of a test: no page is made for a browser that is not there.
needs_chromium = pytest.mark.skipif(not _FOUND, reason="chromium is not installed")


def find_chromium() -> str:
    """The browser, or a skipped test."""
    if not _FOUND:
        pytest.skip("chromium is not installed")
    return _FOUND


def run_chromium(page: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Opens a page, without a network: names lead nowhere."""
    return subprocess.run(
        [
            find_chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}",
            "--enable-logging=stderr", "--virtual-time-budget=20000", *options, page.as_uri(),
        ],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip


def ask(page: Path, folder: Path, script: str, *options: str) -> dict[str, Any]:
    """What an async function of JavaScript finds in a page.

    found: what it returned; trouble: errors, warnings and what the page's policy refused; fetched: every
    resource that was loaded.
    """
    text = page.read_text("utf-8")
    assert "<head>\n" in text
    assert text.rstrip().endswith("</html>")
    text = text.replace("<head>\n", "<head>\n" + _WITNESS, 1)
    head, tail = text.rsplit("</body>", 1)
    watched = folder / f"watched_{page.name}"
    watched.write_text(head + _ASK % {"script": script} + "</body>" + tail, "utf-8")
    done = run_chromium(watched, folder, "--dump-dom", *options)
    answer = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert answer, done.stderr
    found: dict[str, Any] = json.loads(unescape(answer[1]))
    return found
