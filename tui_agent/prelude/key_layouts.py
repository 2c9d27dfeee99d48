"""Latin letters on the keys of other keyboard layouts, so that answers and shortcuts work with each of them."""

_LAYOUTS = (
    ("йцукенгшщзфывапролдячсмить", "qwertyuiopasdfghjklzxcvbnm"),
    ("і", "s"),
    ("ςερτυθιοπασδφγηξκλζχψωβνμ", "wertyuiopasdfghjklzxcvbnm"),
    ("קראטוןםפשדגכעיחלךזסבהנמצ", "ertyuiopasdfghjklzxcvbnm"),
    ("ضصثقفغعهخحشسيیبلاتنمئءؤرىة", "qwertyuiopasddfghjklzxcvnm"),
    ("ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔㅁㄴㅇㄹㅎㅗㅓㅏㅣㅋㅌㅊㅍㅠㅜㅡ", "qwertyuiopasdfghjklzxcvbnm"),
)
"""Russian and Ukrainian, Greek, Hebrew, Arabic and Persian, Korean: letters, and the Latin letters of their keys."""

_LATIN: "dict[str, str]" = {}
for _letters, _keys in _LAYOUTS:
    for _letter, _key in zip(_letters, _keys, strict=True):
        # Scripts without capital letters have the small letter in both places.
        _LATIN[_letter.upper()] = _key.upper()
        _LATIN[_letter] = _key


def latin_letter(character: str) -> str:
    """Return the Latin letter of the key that types a character; empty if it is not known."""
    if "\uff21" <= character <= "\uff5a":
        letter = chr(ord(character) - 0xFEE0)  # Full-width letters follow the order of ASCII.
        return letter if letter.isalpha() else ""
    return _LATIN.get(character, "")
