"""The text of a document that a request carries. A broken or encrypted one is refused, as models do."""

import importlib
import io

PDF = "application/pdf"
PDF_MARK = b"%PDF-"


class UnreadableDocument(Exception):
    """The document cannot be read."""


def document_text(data: bytes, mime_type: str) -> str:
    """What a model reads in a document; nothing in an image."""
    if mime_type.startswith("text/"):
        return data.decode(errors="replace")
    if mime_type != PDF:
        return ""
    if PDF_MARK not in data[:1024]:
        raise UnreadableDocument
    try:
        pypdf = importlib.import_module("pypdf")
    except ImportError:  # without the extra `feeds` no PDF is read, here or in a job
        return ""
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted:
            raise UnreadableDocument
        return "\n".join(page.extract_text() for page in reader.pages)
    except pypdf.errors.PyPdfError as problem:
        raise UnreadableDocument from problem
