"""Parts of a page that is sent, which are gzip in base64."""

import base64
import gzip
import json
import re

from figures.page.packed import zipped


def packed(text, name):
    """A part of a page by its name, as it is written there."""
    return re.search(rf'id="packed-{name}">(.*?)</script>', text)[1]


def part(text, name):
    """A part of a page, as text."""
    return gzip.decompress(base64.b64decode(packed(text, name))).decode()


def content(text, name):
    """A part of a page that is JSON: scene or figures."""
    return json.loads(part(text, name))


def changed(text, name, value):
    """The page with another value of a part that is JSON."""
    return re.sub(rf'(id="packed-{name}">).*?(</script>)', rf"\g<1>{zipped(json.dumps(value).encode())}\g<2>", text)
