"""Cases with their results, as in evaluate's template of a module."""

_DOCUMENT = "A storm hit the coast on Monday night. Forty families spent the night in the school."

test_cases = [
    {"predictions": [_DOCUMENT], "sources": [_DOCUMENT], "result": {"score": 1.0}},
    {
        "predictions": ["A storm hit the coast.", "Shares rose in Tokyo."],
        "sources": [_DOCUMENT, _DOCUMENT],
        "result": {"score": 0.1919},
    },
    {
        "predictions": ["", "Forty families slept in the school."],
        "sources": [[_DOCUMENT], [_DOCUMENT, "The school is new."]],
        "result": {"score": 0.1024},
    },
]
