"""The description of the API in OpenAPI 3.1, from the same rows and types that answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from aliquot.control.views import Mistake
from aliquot.interfaces.api.routes import Route

_REF: Final = "#/components/schemas/{name}"


def describe_api(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """The whole document."""
    types: list[Any] = [Mistake]
    for route in routes:
        types += [kind for kind in (route.gives, route.body) if kind not in {None, bytes}]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    of_type = {repr(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, of_type)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Aliquot",
            "version": version,
            "description": "Spoken over a Unix socket; the caller is who the kernel says it is.",
        },
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(route: Route, of_type: dict[str, Any]) -> dict[str, Any]:
    if route.gives is bytes:
        content: dict[str, Any] = {"application/octet-stream": {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": of_type[repr(route.gives)]}}
    told: dict[str, Any] = {
        "operationId": route.answer.__name__.strip("_"),
        "summary": route.says,
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": {
            str(route.status): {"description": "Done.", "content": content},
            "default": {
                "description": "Not done.",
                "content": {"application/json": {"schema": of_type[repr(Mistake)]}},
            },
        },
    }
    if route.body is not None:
        schema = of_type[repr(route.body)]
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return told


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", route.path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    _, components = msgspec.json.schema_components([route.query], ref_template=_REF)
    properties = components[route.query.__name__].get("properties", {})
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in properties.items()
    ]
