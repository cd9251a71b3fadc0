"""The endpoint and the batch of docs/deployment.md, as the page has them, with real clients."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from support import predictor_models as models

import pymc_trees as pmt

PAGE = (Path(__file__).parents[2] / "docs/deployment.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
CLIENTS, REQUESTS = 20, 5


def block(text):
    """The only block of the page that has a text."""
    [found] = [one for one in BLOCKS if text in one]
    return found


def posted(port, content):
    """Status and answer of a request."""
    try:
        with urlopen(Request(f"http://127.0.0.1:{port}", content), timeout=120) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture
def service(tmp_path):
    """A predictor with levels and a LogNormal response, read from its file."""
    with pm.Model() as model:
        mu = pmt.BART("mu", pmt.Data("X", models.FRAME), leaf=models.LEAF, m=models.M)
        s = pm.HalfNormal("s", 1.0)
        pm.LogNormal("y", mu, s, observed=np.exp(models.Y), shape=mu.shape)
    case = models.drawn(model, None)
    return pmt.load(pmt.predictor(case.idata, case.model).save(tmp_path / "fit.pmt"))


@pytest.fixture
def port(service):
    """Of a server that runs the page's lines."""
    code = block("class Handler")
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    names = {"json": json, "service": service, "BaseHTTPRequestHandler": BaseHTTPRequestHandler}
    names["ThreadingHTTPServer"] = ThreadingHTTPServer
    exec(compile(code, "deployment.md", "exec"), names)
    names["Handler"].log_message = lambda *args: None
    server = names["Server"](("127.0.0.1", 0), names["Handler"])
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def records(frame):
    """Rows as JSON has them."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


@pytest.mark.filterwarnings("ignore:.*none of the new values:UserWarning")
def test_twenty_clients_at_once(service, port):
    frames = [models.new_frame(5, seed=k) for k in range(CLIENTS * REQUESTS)]
    start = Barrier(CLIENTS)

    def client(k):
        start.wait()
        own = frames[k::CLIENTS]
        return [posted(port, json.dumps(records(frame)).encode()) for frame in own]

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(client, range(CLIENTS)))
    for k, of_client in enumerate(answers):
        for (status, answer), frame in zip(of_client, frames[k::CLIENTS], strict=True):
            assert status == 200
            low, high = service.predict(frame, "interval", of="y").T
            expected = {"mean": service.predict(frame), "low": low, "high": high}
            assert answer == {name: values.tolist() for name, values in expected.items()}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'[{"a": 1.0}]', "lacks the columns"),
        (b"not JSON", "Expecting value"),
        (b"[]", "X"),
        (json.dumps([{"a": "x", "b": 1, "c": 1, "town": "Bonn", "size": "S"}]).encode(), "numeric"),
    ],
)
def test_a_bad_request_is_the_clients_error(port, content, words):
    status, answer = posted(port, content)
    assert status == 400 and words in answer["error"]


@pytest.mark.filterwarnings("ignore:.*none of the new values:UserWarning")
def test_a_batch_over_parquet(service, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    frame = pd.concat([models.new_frame(seed=k) for k in range(300)], ignore_index=True)
    given = {name: [v if v == v else None for v in frame[name].tolist()] for name in frame}
    table = type("Table", (), {"to_dict": lambda self, kind: given})()
    exec(compile(block("ParquetWriter"), "deployment.md", "exec"), {"X": table, "service": service})
    found = pq.read_table("predicted.parquet")
    assert found.num_rows == len(frame) and pq.ParquetFile("predicted.parquet").num_row_groups > 1
    np.testing.assert_allclose(found["mean"].to_numpy(), service.predict(frame), rtol=1e-12)
