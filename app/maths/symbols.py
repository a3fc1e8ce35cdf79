# ruff: noqa: RUF001 - signs that look like others are what this is about
"""What each command and character stands for. What is not here is not known."""

from __future__ import annotations

from app.maths.tree import Kind, Layout


def _words(text: str) -> list[str]:
    return text.split()


_TABLES = {
    Kind.ORD: """
        alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ
        iota ι kappa κ varkappa ϰ lambda λ mu μ nu ν xi ξ pi π varpi ϖ rho ρ varrho ϱ sigma σ
        varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω
        Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω
        infty ∞ partial ∂ nabla ∇ forall ∀ exists ∃ nexists ∄ neg ¬ lnot ¬ emptyset ∅
        varnothing ∅ aleph ℵ hbar ℏ ell ℓ wp ℘ Re ℜ Im ℑ angle ∠ measuredangle ∡ triangle △
        square □ Box □ blacksquare ■ prime ′ degree ° dots … ldots … dotsc … cdots ⋯ dotsb ⋯
        vdots ⋮ ddots ⋱ top ⊤ bot ⊥ dagger † checkmark ✓ vert | Vert ‖ | ‖ backslash \\
        % % $ $ # # & & _ _
    """,
    Kind.BIN: """
        pm ± mp ∓ times × cdot · div ÷ ast ∗ star ⋆ circ ∘ bullet ∙ cap ∩ cup ∪ setminus ∖
        smallsetminus ∖ wedge ∧ land ∧ vee ∨ lor ∨ oplus ⊕ ominus ⊖ otimes ⊗ odot ⊙ bmod mod
        mod mod
    """,
    Kind.REL: """
        le ≤ leq ≤ leqslant ≤ ge ≥ geq ≥ geqslant ≥ ne ≠ neq ≠ lt < gt > ll ≪ gg ≫ equiv ≡
        approx ≈ cong ≅ sim ∼ simeq ≃ propto ∝ doteq ≐ asymp ≍ triangleq ≜ coloneqq ≔
        in ∈ notin ∉ ni ∋ subset ⊂ subseteq ⊆ subsetneq ⊊ supset ⊃ supseteq ⊇ supsetneq ⊋
        mid ∣ nmid ∤ parallel ∥ nparallel ∦ perp ⊥ prec ≺ succ ≻ preceq ⪯ succeq ⪰ vdash ⊢
        models ⊨ to → rightarrow → longrightarrow ⟶ gets ← leftarrow ← longleftarrow ⟵
        leftrightarrow ↔ mapsto ↦ longmapsto ⟼ hookrightarrow ↪ uparrow ↑ downarrow ↓
        Rightarrow ⇒ Longrightarrow ⟹ implies ⟹ Leftarrow ⇐ impliedby ⟸ Leftrightarrow ⇔
        Longleftrightarrow ⟺ iff ⟺ therefore ∴ because ∵
    """,
    Kind.BIG: """
        sum ∑ prod ∏ coprod ∐ int ∫ iint ∬ iiint ∭ oint ∮ bigcup ⋃ bigcap ⋂ bigoplus ⨁
        bigotimes ⨂ bigvee ⋁ bigwedge ⋀ lim lim
    """,
    Kind.OPEN: "lbrace { { { langle ⟨ lfloor ⌊ lceil ⌈ lvert | lVert ‖ lbrack [",
    Kind.CLOSE: "rbrace } } } rangle ⟩ rfloor ⌋ rceil ⌉ rvert | rVert ‖ rbrack ]",
    Kind.PUNCT: "colon :",
}
COMMANDS = {
    name: (sign, kind)
    for kind, table in _TABLES.items()
    for words in [_words(table)]
    for name, sign in zip(words[::2], words[1::2], strict=True)
}
COMMANDS |= {"limsup": ("lim sup", Kind.BIG), "liminf": ("lim inf", Kind.BIG)}
COMMANDS |= {
    name: (name, Kind.OP)
    for name in [
        "arccos",
        "arcsin",
        "arctan",
        "arg",
        "cos",
        "cosh",
        "cot",
        "coth",
        "csc",
        "deg",
        "det",
        "dim",
        "exp",
        "gcd",
        "hom",
        "inf",
        "ker",
        "lcm",
        "lg",
        "ln",
        "log",
        "max",
        "min",
        "Pr",
        "sec",
        "sin",
        "sinh",
        "sup",
        "tan",
        "tanh",
    ]
}
COMMANDS |= {
    ",": (" ", Kind.SPACE),
    ":": (" ", Kind.SPACE),
    ";": (" ", Kind.SPACE),
    ">": (" ", Kind.SPACE),
    " ": (" ", Kind.SPACE),
    "!": ("", Kind.SPACE),
    "quad": ("  ", Kind.SPACE),
    "qquad": ("    ", Kind.SPACE),
    "thinspace": (" ", Kind.SPACE),
}

CHARACTERS = {
    **{c: (c, Kind.ORD) for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.|"},
    **{c: (c, Kind.BIN) for c in "+-*"},
    **{c: (c, Kind.REL) for c in "=<>:"},
    **{c: (c, Kind.CLOSE) for c in ")]!?"},
    **{c: (c, Kind.OPEN) for c in "(["},
    **{c: (c, Kind.PUNCT) for c in ",;"},
    "/": ("/", Kind.SLASH),
    "~": (" ", Kind.SPACE),
    "−": ("-", Kind.BIN),
} | {
    # Models write many signs as they are.
    sign: (sign, kind)
    for sign, kind in COMMANDS.values()
    if len(sign) == 1 and not sign.isascii()
}

IGNORED = frozenset(
    [
        "displaystyle",
        "textstyle",
        "scriptstyle",
        "scriptscriptstyle",
        "limits",
        "nolimits",
        "big",
        "Big",
        "bigg",
        "Bigg",
        "bigl",
        "Bigl",
        "biggl",
        "Biggl",
        "bigr",
        "Bigr",
        "biggr",
        "Biggr",
        "bigm",
        "Bigm",
    ]
)
"""They change the size or the place of something, never the meaning."""

FRACTIONS = frozenset(("frac", "dfrac", "tfrac", "cfrac"))
BINOMIALS = frozenset(("binom", "dbinom", "tbinom"))
TEXTS = frozenset(("text", "textrm", "textbf", "textit", "textnormal", "mbox"))

ACCENTS = {
    "hat": "\u0302",
    "widehat": "\u0302",
    "tilde": "\u0303",
    "widetilde": "\u0303",
    "bar": "\u0304",
    "dot": "\u0307",
    "ddot": "\u0308",
    "vec": "\u20d7",
    "overrightarrow": "\u20d7",
    "overline": "\u0305",
    "underline": "\u0332",
}
LINES = frozenset((ACCENTS["overline"], ACCENTS["underline"]))
"""Marks that join up over several characters."""

NEGATED = {
    "=": "≠", "<": "≮", ">": "≯", "≤": "≰", "≥": "≱", "∈": "∉", "∋": "∌", "⊂": "⊄", "⊆": "⊈",
    "⊃": "⊅", "⊇": "⊉", "≡": "≢", "≈": "≉", "≅": "≇", "∼": "≁", "∣": "∤", "∥": "∦",
}  # fmt: skip

PAIRS = {
    "(": ")]", "[": "])", "{": "}", "⟨": "⟩", "⌊": "⌋", "⌈": "⌉", "|": "|", "‖": "‖",
}  # fmt: skip
"""What may close a bracket; intervals are half open."""

ENVIRONMENTS = {
    "matrix": (Layout.MATRIX, "", ""),
    "smallmatrix": (Layout.MATRIX, "", ""),
    "array": (Layout.MATRIX, "", ""),
    "pmatrix": (Layout.MATRIX, "(", ")"),
    "bmatrix": (Layout.MATRIX, "[", "]"),
    "Bmatrix": (Layout.MATRIX, "{", "}"),
    "vmatrix": (Layout.MATRIX, "|", "|"),
    "Vmatrix": (Layout.MATRIX, "‖", "‖"),
    "cases": (Layout.CASES, "{", ""),
    "dcases": (Layout.CASES, "{", ""),
    **dict.fromkeys(
        _words("align align* aligned gather gather* gathered split equation equation*"),
        (Layout.EQUATIONS, "", ""),
    ),
}

SUPERSCRIPTS = dict(
    zip(
        "0123456789+-=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWβγδθφχ′†",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵝᵞᵟᶿᵠᵡ′†",
        strict=True,
    )
)
SUBSCRIPTS = dict(
    zip(
        "0123456789+-=()aehijklmnoprstuvxβγρφχ",
        "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ",
        strict=True,
    )
)

_ALPHABETS = {
    "mathbf": (0x1D400, 0x1D41A, 0x1D7CE, ""),
    "mathcal": (0x1D49C, 0x1D4B6, 0, "Bℬ Eℰ Fℱ Hℋ Iℐ Lℒ Mℳ Rℛ eℯ gℊ oℴ"),
    "mathfrak": (0x1D504, 0x1D51E, 0, "Cℭ Hℌ Iℑ Rℜ Zℨ"),
    "mathbb": (0x1D538, 0x1D552, 0x1D7D8, "Cℂ Hℍ Nℕ Pℙ Qℚ Rℝ Zℤ"),
    "mathsf": (0x1D5A0, 0x1D5BA, 0x1D7E2, ""),
    "mathtt": (0x1D670, 0x1D68A, 0x1D7F6, ""),
}
_ALPHABETS |= {"bm": _ALPHABETS["mathbf"], "boldsymbol": _ALPHABETS["mathbf"]}
_ALPHABETS |= {"mathscr": _ALPHABETS["mathcal"]}


def _alphabet(upper: int, lower: int, digits: int, exceptions: str) -> dict[str, str]:
    letters = {chr(ord("A") + i): chr(upper + i) for i in range(26)}
    letters |= {chr(ord("a") + i): chr(lower + i) for i in range(26)}
    if digits:
        letters |= {str(i): chr(digits + i) for i in range(10)}
    return letters | {pair[0]: pair[1] for pair in exceptions.split()}


ALPHABETS = {name: _alphabet(*table) for name, table in _ALPHABETS.items()}
"""Letters whose shape is part of their name: a vector is not the length with the same letter."""
