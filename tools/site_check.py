"""Look at the built site in a headless Chromium, as a reader would.

    python tools/site_check.py book/_build/html
    python tools/site_check.py book/_build/html --only 03_jvp --screenshots shots

Every page of the table of contents must load without an error in the console and without a request
that leaves the machine, with its mathematics typeset, its pictures shown and described, and without
scrolling sideways on a phone; and the search must find a word.  Prints a line a page; exits
1 on a failure.  With --screenshots the pages are saved as well, on a desk and a phone, light and
dark, in tiles.
"""

import argparse
import base64
import contextlib
import functools
import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import websocket

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0",
    "--remote-allow-origins=*", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
DESK, PHONE = (1280, 900), (390, 844)
TILE = 2200                         # height of one saved picture
WORD = "minijax"
TIMEOUT = 60


# --- The server and the browser -------------------------------------------------------------------


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextlib.contextmanager
def served(folder):
    """Serve a folder on a free port of this machine; yields the address."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def find_browser():
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    raise SystemExit("site_check: no Chromium found; 'make site-check' installs Debian's")


def wait_for(condition, what, timeout=TIMEOUT):
    """Poll until `condition()` is true and return its value."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise TimeoutError(f"no {what} within {timeout} s")


@contextlib.contextmanager
def browser():
    """A page of a headless Chromium with a profile of its own; ended on leaving."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen([find_browser(), *FLAGS, f"--user-data-dir={profile}"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port_file = Path(profile, "DevToolsActivePort")
            wait_for(lambda: port_file.exists() and port_file.read_text().count("\n"), "browser")
            yield Page(debugger_address(port_file.read_text().split()[0]))
        finally:
            process.terminate()
            process.wait(10)


def debugger_address(port):
    """The web socket of the one page that a new browser has."""
    def first_page():
        url = f"http://127.0.0.1:{port}/json/list"
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            pages = [t for t in json.load(answer) if t["type"] == "page"]
        return pages[0]["webSocketDebuggerUrl"] if pages else None
    return wait_for(first_page, "page")


class Page:
    """One page, driven through the DevTools protocol; `events` is what happened since `open`."""

    def __init__(self, address):
        self.socket = websocket.create_connection(address, timeout=TIMEOUT)
        self.count, self.events = 0, []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while (message := self.receive()).get("id") != self.count:
            pass
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return message["result"]

    def receive(self):
        message = json.loads(self.socket.recv())
        if "method" in message:
            self.events.append((message["method"], message["params"]))
        return message

    def evaluate(self, expression):
        """The value of a JavaScript expression; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']['text']}")
        return result["result"].get("value")

    def open(self, url):
        """Go to an address and wait until it is loaded and its mathematics is set."""
        self.events = []
        self.call("Page.navigate", url=url)
        wait_for(lambda: self.shows(url), f"load of {url}")
        self.evaluate("window.MathJax?.startup ? MathJax.startup.promise.then(() => 1) : 1")

    def shows(self, url):
        """Is this the page that is loaded?  (The load event may be that of the page before.)"""
        try:
            return self.evaluate(f"document.readyState == 'complete' && location.href == {url!r}")
        except RuntimeError:                     # the old page went away while it was asked
            return False

    def resize(self, size, mobile):
        width, height = size
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=mobile)


# --- What a page must be --------------------------------------------------------------------------

UNSET_MATH = """[...document.querySelectorAll('.math')]
    .filter(e => !e.querySelector('mjx-container')).map(e => e.textContent.slice(0, 60))"""
BAD_MATH = """[...document.querySelectorAll('mjx-container [data-mjx-error]')]
    .map(e => e.getAttribute('data-mjx-error'))"""
UNKNOWN_MACROS = """[...document.querySelectorAll('mjx-container [fill=red]')]
    .map(e => e.closest('.math').textContent.slice(0, 60))"""
CLIPPED_TEXT = """[...document.querySelectorAll('article svg text')].filter(e => {
    const text = e.getBoundingClientRect(), box = e.ownerSVGElement.getBoundingClientRect();
    return text.right > box.right + 1 || text.left < box.left - 1; })
    .map(e => e.textContent.slice(0, 80))"""
BROKEN_IMAGES = """[...document.images].filter(i => i.loading !== 'lazy' && !i.naturalWidth)
    .map(i => i.src.slice(0, 100))"""
NAMELESS_IMAGES = """[...document.querySelectorAll('article img:not([alt]), article svg[role=img]')]
    .filter(e => !e.closest('mjx-container'))
    .filter(e => e.tagName == 'IMG' || !(e.getAttribute('aria-label') || e.querySelector('title')))
    .map(e => e.outerHTML.slice(0, 80))"""
TOO_WIDE = """(() => {
    const page = document.documentElement, wide = window.innerWidth;
    const width = Math.max(page.scrollWidth, document.body.scrollWidth);
    if (width <= screen.width) return [];
    const clipped = e => { for (e = e.parentElement; e && e !== document.body; e = e.parentElement)
        if (getComputedStyle(e).overflowX !== 'visible') return true; return false; };
    return [...document.querySelectorAll('body *')]
        .filter(e => e.getBoundingClientRect().right > screen.width + 1 && !clipped(e)).slice(-2)
        .map(e => e.outerHTML.slice(0, 100)).concat([`the page is ${width} px wide`]);
})()"""


def check_page(page, site, url):
    """What is wrong with one page, as a list of sentences."""
    page.resize(DESK, mobile=False)
    page.open(url)
    wrong = [] if page.evaluate("!!document.querySelector('article h1')") else ["has no title"]
    wrong += [f"mathematics is not typeset: {t!r}" for t in page.evaluate(UNSET_MATH)]
    wrong += [f"an error in mathematics: {t!r}" for t in page.evaluate(BAD_MATH)]
    wrong += [f"a macro that MathJax does not know: {t!r}" for t in page.evaluate(UNKNOWN_MACROS)]
    wrong += [f"text runs out of its picture: {t!r}" for t in page.evaluate(CLIPPED_TEXT)]
    wrong += [f"a picture is missing: {t}" for t in page.evaluate(BROKEN_IMAGES)]
    wrong += [f"a picture has no description: {t}" for t in page.evaluate(NAMELESS_IMAGES)]
    page.resize(PHONE, mobile=True)
    wrong += [f"scrolls sideways on a phone: {t}" for t in page.evaluate(TOO_WIDE)]
    return wrong + complaints(page.events, site)


def complaints(events, site):
    """What the console and the network said since the page was opened."""
    wrong = []
    for name, event in events:
        if name == "Network.requestWillBeSent":
            url = event["request"]["url"]
            if not url.startswith((site, "data:", "blob:", "about:")):
                wrong.append(f"a request leaves the machine: {url[:100]}")
        elif name == "Network.responseReceived" and event["response"]["status"] >= 400:
            wrong.append(f"{event['response']['status']}: {event['response']['url']}")
        elif name == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            text = details.get("exception", {}).get("description", details["text"])
            wrong.append(f"exception: {text}")
        elif name == "Runtime.consoleAPICalled" and event["type"] == "error":
            wrong.append(f"console: {[a.get('value') for a in event['args']]}")
        elif name == "Log.entryAdded" and event["entry"]["level"] == "error":
            wrong.append(f"console: {event['entry']['text']} {event['entry'].get('url', '')}")
    return wrong


SEARCH_DONE = """!!document.querySelector('#search-results .search-summary') &&
    !/^\\s*(Searching|Preparing)/.test(document.querySelector('#search-results').innerText)"""


def check_search(page, site, word):
    """The search must list a page for a word of the book, and none for a word that is not in it."""
    def found(query):
        page.open(f"{site}/search.html?q={query}")
        wait_for(lambda: page.evaluate(SEARCH_DONE), "answer of the search", 20)
        time.sleep(0.5)
        return page.evaluate("document.querySelectorAll('#search-results li a').length")
    wrong = [] if found(word) else [f"finds nothing for {word!r}"]
    wrong += complaints(page.events, site)
    return wrong + (["finds pages for a word that stands nowhere"] if found("qzxvwkj") else [])


def pages_of(page, site):
    """The addresses in the table of contents, the landing page first."""
    page.open(f"{site}/index.html")
    links = page.evaluate("[...document.querySelectorAll('nav.bd-links a')].map(a => a.href)")
    links = [link.split("#")[0] for link in links]
    return list(dict.fromkeys([f"{site}/index.html", *(u for u in links if u.startswith(site))]))


# --- Pictures -------------------------------------------------------------------------------------


STILL = """document.head.append(Object.assign(document.createElement('style'),
    {textContent: '* { transition: none !important; animation: none !important }'}))"""


def save_screenshots(page, url, name, folder):
    """Save one page on a desk and a phone, light and dark."""
    for device, size in (("desk", DESK), ("phone", PHONE)):
        page.resize(size, mobile=device == "phone")
        page.open(url)
        page.evaluate(STILL)
        for mode in ("light", "dark"):
            page.evaluate(f"document.documentElement.dataset.theme = '{mode}';"
                          f"document.documentElement.dataset.mode = '{mode}'; 1")
            time.sleep(0.3)
            save_tiles(page, size[0], folder / f"{name}-{device}-{mode}")


def save_tiles(page, width, stem):
    height = page.evaluate("document.documentElement.scrollHeight")
    stem.parent.mkdir(parents=True, exist_ok=True)
    for k, top in enumerate(range(0, height, TILE), 1):
        clip = {"x": 0, "y": top, "width": width, "height": min(TILE, height - top), "scale": 1}
        data = page.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        Path(f"{stem}-{k}.png").write_bytes(base64.b64decode(data))


# --- All of it ------------------------------------------------------------------------------------


def look(folder, only, screenshots):
    """Check the site; print a line a page and return the number of failures."""
    failures = 0
    with served(folder) as site, browser() as page:
        for url in pages_of(page, site):
            name = url.removeprefix(site + "/").removesuffix(".html")
            if only and only not in name:
                continue
            failures += report(name, check_page(page, site, url))
            if screenshots:
                save_screenshots(page, url, name.replace("/", "-"), screenshots)
        if not only:
            page.resize(DESK, mobile=False)
            failures += report("search", check_search(page, site, WORD))
    return failures


def report(name, wrong):
    print(f"{name:48s} {'FAILED' if wrong else 'ok'}", flush=True)
    for line in dict.fromkeys(wrong):
        print(f"    {line}", flush=True)
    return bool(wrong)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="the folder of the built site")
    parser.add_argument("--only", help="look only at pages whose name holds this")
    parser.add_argument("--screenshots", type=Path, metavar="DIR", help="save the pages here")
    args = parser.parse_args(argv)
    if not (args.site / "index.html").exists():
        parser.error(f"{args.site} holds no site; run 'make book'")
    return int(look(args.site, args.only, args.screenshots) > 0)


if __name__ == "__main__":
    sys.exit(main())
