"""The service over HTTP on a Unix socket: JSON in, JSON out, the caller known by the kernel's word.

`routes` says what there is, `app` answers, `server` listens, `openapi` describes.
"""
