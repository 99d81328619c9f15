"""Films of logged matches: one match, or how play changed while it was learned."""
