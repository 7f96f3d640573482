"""TCP ports that more than one part of the system must agree on."""

HTTP_PORT = 80
HTTPS_PORT = 443
API_PORT = 8000
POSTGRES_PORT = 5432
REDIS_PORT = 6379
