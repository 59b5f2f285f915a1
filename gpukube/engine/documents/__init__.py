"""What the engine found and did, as plain data: one shape for tables, JSON, YAML and Markdown.

Lives here: one maker per kind of document, the shapes they are held to, and the JSON Schemas made of the shapes.
Must not live here: how a document is shown (cli). Nothing secret is in one: requests carry no credentials and their
user data goes as a digest, native answers and kubeconfigs are not included.
"""

from __future__ import annotations

from gpukube.engine.documents.listing import list_document, pool_document
from gpukube.engine.documents.parts import Document, diagnostic_document
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.documents.report import event_document, report_document, validation_document
from gpukube.engine.documents.schema import SCHEMA_NAMES, document_schema
from gpukube.engine.documents.summary import plan_summary
from gpukube.engine.documents.usage import used_devices

__all__ = [
    "SCHEMA_NAMES",
    "Document",
    "diagnostic_document",
    "document_schema",
    "event_document",
    "list_document",
    "plan_document",
    "plan_summary",
    "pool_document",
    "report_document",
    "used_devices",
    "validation_document",
]
