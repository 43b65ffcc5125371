"""Generation as students write it: a function of a model and a prompt, or a method of their model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from heedful.contracts.subject import NotApplicable
from heedful.contracts.suites.generation import BLOCK, WORDS, draw, predict
from heedful.course.forms.gpt import NAMES as MODELS
from heedful.course.student_file import Operation, StudentFile, pick_parameter, simplify

NAMES = ["generate", "sample", "generate_text", "generate_tokens", "greedy_decode", "greedy_decoding", "decode", "greedy", "sample_sequence",
         "generate_sequence", "greedy_search", "top_k_sampling", "nucleus_sampling", "complete"]  # fmt: skip
OPTIONS: dict[str, tuple[str, ...]] = {
    "temperature": ("temperature", "temp", "t", "tau"),
    "top_k": ("topk", "k"),
    "top_p": ("topp", "p", "nucleus"),
    "sample": ("sample", "dosample", "sampling"),
    "greedy": ("greedy",),
    "stop": (
        "stop",
        "eosid",
        "eostokenid",
        "eos",
        "stopid",
        "stoptoken",
        "endid",
        "eotid",
        "eostoken",
        "stoptokenid",
    ),
    "cache": ("usecache", "cache", "kvcache", "usekvcache"),
    "new": (
        "maxnewtokens",
        "newtokens",
        "n",
        "steps",
        "maxtokens",
        "numtokens",
        "ntokens",
        "new",
        "maxnew",
        "numsteps",
        "length",
    ),
    "total": ("maxlen", "maxlength", "totallength"),
    "block_size": ("blocksize", "contextlength", "contextsize", "maxcontext", "nctx"),
}
"""What students call each option; a name is compared without case and underscores."""
STYLES = ("pair", "tensor", "object")


class TableModel(nn.Module):
    """A model that is given to the student's function; it answers in one of the usual styles."""

    def __init__(self, table: Tensor, block_size: int, style: str) -> None:
        super().__init__()
        self.table = nn.Parameter(table.clone())
        self.block_size, self.style = block_size, style
        self.config = SimpleNamespace(block_size=block_size, vocab_size=len(table), n_positions=block_size,
                                      max_position_embeddings=block_size, eos_token_id=None, n_ctx=block_size)  # fmt: skip

    def get_block_size(self) -> int:
        """Return the longest context."""
        return self.block_size

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return self.table.device

    def forward(
        self,
        input_ids: Tensor,
        targets: Any = None,
        past_key_values: Any = None,
        use_cache: Any = None,
        **_: Any,
    ) -> Any:
        """Return the logits of every position given; with a cache, the ids so far are in it."""
        ids = input_ids if past_key_values is None else torch.cat([past_key_values[0], input_ids], 1)
        if ids.shape[1] > self.block_size:
            raise ValueError(
                f"Cannot forward a sequence of length {ids.shape[1]}, the block size is only {self.block_size}"
            )
        logits = predict(self.table, ids)[:, -input_ids.shape[1] :]
        if self.style == "object" or past_key_values is not None or use_cache:
            return SimpleNamespace(logits=logits, past_key_values=(ids,), loss=None)
        return (logits, None) if self.style == "pair" else logits


class GenerationForm:
    """How to call one student's function; calibration finds out which answers of a model it reads."""

    def __init__(self, function: Callable[..., Any], method: bool) -> None:
        self.function = function
        self.parameters = list(inspect.signature(function).parameters.items())
        names = [name for name, _ in self.parameters]
        self.places = {o: n for o, words in OPTIONS.items() for n in names[2:] if simplify(n) in words}
        first = pick_parameter(names[:2], "model", "lm", "self", "net", "gpt", "decoder")
        self.model_first = method or first == names[0] or first is None
        self.style, self.rank = "pair", 2
        self.problem: Exception | None = None
        self.calibrate()
        self.samples = self.calibrate_sampling()

    def calibrate(self) -> None:
        """Find the style of the model's answers, and whether prompts are [b, t] or [t]."""
        for rank in (2, 1):
            for style in STYLES:
                self.style, self.rank = style, rank
                try:
                    if "cache" in self.places:
                        self.generate(**draw(1, 2, 2, cache=True))
                        self.generate(**draw(1, 2, 2, cache=False))
                    out = self.generate(**draw(1, 2, 1))["out"]
                    if out.dim() == len("bt") and out.shape[1] >= 1 and not out.is_floating_point():
                        return
                except Exception as error:  # another style may fit
                    self.problem = self.problem or error
        self.style, self.rank = "pair", 2

    def calibrate_sampling(self) -> bool:
        """Whether other seeds give other tokens."""
        if {"sample", "greedy"} & set(self.places):
            return True
        try:
            rows = []
            for seed in range(3):
                torch.manual_seed(seed)
                rows.append(self.generate(**{**draw(8, 2, 4), "sample": True})["out"])
        except Exception:
            return False
        return any(not torch.equal(rows[0], other) for other in rows[1:]) or bool(
            {"temperature", "top_k", "top_p"} & set(self.places)
        )

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by their names; greedy choice is asked for in the function's own way."""
        options = {
            k: v
            for k, v in given.items()
            if k in ("temperature", "top_k", "top_p", "stop", "cache", "new", "block_size") and v is not None
        }
        options["sample"] = bool(given.get("sample"))
        options["greedy"] = not options["sample"]
        options["total"] = given["prompt"].shape[1] + given["new"]
        if not options["sample"] and not {"sample", "greedy"} & set(self.places):
            if "top_k" in self.places:
                options["top_k"] = 1
            elif "temperature" in self.places:
                options["temperature"] = 1e-6
        for name, nothing in (("top_k", WORDS), ("top_p", 1.0)):
            default = dict(self.parameters)[self.places[name]].default if name in self.places else None
            if default not in (None, 0):
                options.setdefault(name, nothing)
        for name in ("temperature", "top_k", "top_p", "stop", "cache"):
            if name in given and given[name] is not None and name not in self.places:
                raise NotApplicable(f"it takes no {name}")
        arguments = {self.places[name]: value for name, value in options.items() if name in self.places}
        defaults = {"vocabsize": WORDS, "device": "cpu", "temperature": 1.0}
        for name, parameter in self.parameters[2:]:
            required = (
                parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            )
            if name in arguments or not required:
                continue
            if simplify(name) in defaults:
                arguments[name] = defaults[simplify(name)]
            elif self.places.get("temperature") == name:
                arguments[name] = 1.0
            elif self.places.get("top_k") == name:
                arguments[name] = WORDS
            elif self.places.get("top_p") == name:
                arguments[name] = 1.0
            elif self.places.get("stop") == name:
                arguments[name] = -5
            else:
                raise NotApplicable(f"the meaning of its parameter {name} is unknown")
        return arguments

    def generate(self, **given: Any) -> dict[str, Any]:
        """Carry out the operation `generate`."""
        model = TableModel(given["table"], given.get("block_size") or BLOCK, self.style).eval()
        prompt, arguments = given["prompt"].long(), self.arguments(given)
        if self.rank == 1:
            rows = [self.call(model, row, arguments) for row in prompt]
            longest = max(len(row) for row in rows)
            out = torch.stack([torch.cat([row, row[-1:].expand(longest - len(row))]) for row in rows])
        else:
            out = self.call(model, prompt.clone(), arguments)
        if (
            out.dim() == len("bt")
            and out.shape[1] == given["new"]
            and not torch.equal(out[:, : prompt.shape[1]], prompt)
        ):
            out = torch.cat([prompt, out], 1)  # it returns the new tokens alone
        return {"out": out.detach()}

    def call(self, model: nn.Module, prompt: Tensor, arguments: dict[str, Any]) -> Tensor:
        pair = (model, prompt) if self.model_first else (prompt, model)
        returned = self.function(*pair, **arguments)
        if isinstance(returned, tuple):
            returned = returned[0]
        return torch.as_tensor(returned)

    def facts(self) -> dict[str, Any]:
        """Return what was understood: which options it takes, whether it samples and can choose greedily."""
        facts: dict[str, Any] = {
            name: name in self.places for name in ("temperature", "top_k", "top_p", "stop", "cache")
        }
        greedy = not self.samples or bool({"sample", "greedy", "top_k", "temperature"} & set(self.places))
        return facts | {"found": self.function.__name__, "samples": self.samples, "greedy": greedy}


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return the operation `generate`, of a function or of a method of a model."""
    function = file.find(NAMES, kind="function")
    method = False
    if function is None:
        kind = file.find(MODELS, kind="class")
        function = next(
            (
                getattr(kind, n)
                for n in NAMES
                if kind is not None and inspect.isfunction(getattr(kind, n, None))
            ),
            None,
        )
        method = True
    if function is None or len(inspect.signature(function).parameters) < len(("model", "prompt")):
        return {}
    form = GenerationForm(function, method)
    return {"generate": Operation(form.generate, form.facts())}
