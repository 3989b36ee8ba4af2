"""Cases with their results, as in evaluate's template of a module."""

test_cases = [
    {
        "predictions": ["A man sells snow online."],
        "references": ["A man sells snow online."],
        "result": {"score": 1.0},
    },
    {
        "predictions": ["A man sells snow online.", "The dog chased the cat."],
        "references": ["A man is selling snow on the internet.", "The cat chased the dog."],
        "result": {"score": 0.8535},
    },
    {
        "predictions": ["", "Parliament passed the budget last night."],
        "references": [["A man sells snow online."], ["A man sells snow online.", "The budget was passed."]],
        "result": {"score": 0.3057},
    },
]
