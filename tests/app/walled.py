"""A small app, a hostile server and a Chromium."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import gradio as gr
from playwright.sync_api import Error, sync_playwright

from tests.app.raw_page import RawPage
from tests.app.served import served
from tests.conftest import CHROMIUM_FLAGS

ADDRESS = "100.64.7.7"
SCRIPT = b"<title>mine</title><script>fetch('/config').then(() => { document.title = 'mine, and the app'; })</script>"
asked: list[str] = []


class Hostile(BaseHTTPRequestHandler):
    """Gives a page with a script whatever it is asked for, and links or redirects to the app."""

    app = ""

    def do_GET(self) -> None:
        asked.append(self.path)
        target = f"{self.app}/gradio_api/file=http://{ADDRESS}:{self.server.server_address[1]}/evil.png"
        redirects = self.path == "/redirect"
        body = f'<a href="{target}">look</a>'.encode() if self.path == "/link" else SCRIPT
        self.send_response(302 if redirects else 200)
        if redirects:
            self.send_header("Location", target)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def main(chromium: str) -> None:
    for command in ("link set lo up", f"address add {ADDRESS}/32 dev lo"):
        subprocess.run(["ip", *command.split()], check=True)
    hostile = ThreadingHTTPServer((ADDRESS, 0), Hostile)
    threading.Thread(target=hostile.serve_forever, daemon=True).start()
    own = f"http://{ADDRESS}:{hostile.server_address[1]}"
    with gr.Blocks() as blocks:
        files, size = gr.File(elem_id="files", file_count="multiple"), gr.Textbox()
        gr.Button(elem_id="open").click(lambda paths: len(paths), files, size)
    with served(blocks) as app, sync_playwright() as playwright:
        Hostile.app = app
        browser = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_FLAGS))
        page = browser.new_page()
        page.goto(f"{own}/link")
        page.click("a")
        titles = [page.title()]
        try:
            page.goto(f"{own}/redirect")
        except Error as error:  # a download that was begun is one
            titles.append(str(error))
        page.wait_for_timeout(1000)
        titles.append(page.title())
        given = [{"path": f"{own}/event.txt", "meta": {"_type": "gradio.FileData"}}]
        came = RawPage(app).queue("open", files=given).text
        browser.close()
    print(json.dumps({"asked": asked, "titles": titles, "came": came}))


if __name__ == "__main__":
    main(sys.argv[1])
