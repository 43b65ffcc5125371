"""Mistakes in LoRA, bottleneck adapters and soft prompts."""

from __future__ import annotations

from heedful.course.bugs import Bug

LORA = """
import math
import torch
from torch import nn
from torch.nn import functional as F

class LoRALinear(nn.Module):
    def __init__(self, linear, rank=8, alpha=16, dropout=0.0):
        super().__init__()
        self.linear = linear
        self.linear.weight.requires_grad_(False)
        self.linear.bias.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.empty(rank, linear.in_features))
        self.lora_B = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / rank
        self.dropout = nn.Dropout(dropout)
        self.merged = False

    def forward(self, x):
        out = self.linear(x)
        if self.merged:
            return out
        low = self.dropout(x) @ self.lora_A.T
        return out + self.scaling * (low @ self.lora_B.T)

    def merge(self):
        self.linear.weight.data += self.scaling * (self.lora_B @ self.lora_A)
        self.merged = True

    def unmerge(self):
        self.linear.weight.data -= self.scaling * (self.lora_B @ self.lora_A)
        self.merged = False
"""
ADAPTER = """
import torch
from torch import nn

class Adapter(nn.Module):
    def __init__(self, d_model, bottleneck):
        super().__init__()
        self.down = nn.Linear(d_model, bottleneck)
        self.up = nn.Linear(bottleneck, d_model)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        h = torch.relu(self.down(x))
        return x + self.up(h)
"""
PROMPT = """
import torch
from torch import nn

class SoftPrompt(nn.Module):
    def __init__(self, length, d_model):
        super().__init__()
        self.prompt = nn.Parameter(torch.randn(length, d_model) * 0.02)

    def forward(self, x):
        prompt = self.prompt.unsqueeze(0).expand(x.size(0), -1, -1)
        return torch.cat([prompt, x], dim=1)
"""
B = "self.lora_B = nn.Parameter(torch.zeros(linear.out_features, rank))"
SCALING = "self.scaling = alpha / rank"
SUM = "return out + self.scaling * (low @ self.lora_B.T)"
MERGE = "        self.linear.weight.data += self.scaling * (self.lora_B @ self.lora_A)\n        self.merged = True\n"

BUGS = (
    Bug("does not start as it was", "Both factors begin with random numbers, so that the first output is already another one.",
        "What must B A be before the first step?", LORA, ((B, B.replace("torch.zeros", "torch.randn")),)),
    Bug("both factors zero", "Both factors begin with zeros, and neither ever gets a gradient.",
        "What is the gradient of B A with respect to A if B is zero, and the other way round?", LORA,
        (("nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))", "nn.init.zeros_(self.lora_A)"),)),
    Bug("weight not frozen", "The weight of the layer learns too.", "Which parameters have requires_grad?", LORA,
        (("self.linear.weight.requires_grad_(False)", "pass"),)),
    Bug("weight not frozen", "The weight and the bias of the layer learn too.", "Which parameters have requires_grad?", LORA,
        (("self.linear.weight.requires_grad_(False)", "pass"), ("self.linear.bias.requires_grad_(False)", "pass"))),
    Bug("bias not frozen", "The bias of the layer learns too.", "Which parameters have requires_grad?", LORA,
        (("self.linear.bias.requires_grad_(False)", "pass"),)),
    Bug("adapter frozen", "One of the two factors has no gradient.", "Which parameters have requires_grad?", LORA,
        ((B, B[:-1] + ", requires_grad=False)"),)),
    Bug("scale missing", "The product is added without alpha / r.", "What does alpha do in your code?", LORA,
        ((SUM, "return out + low @ self.lora_B.T"),)),
    Bug("scaled by alpha alone", "The product is multiplied by alpha, but not divided by the rank.",
        "What happens to the change if the rank is doubled?", LORA, ((SCALING, "self.scaling = alpha"),)),
    Bug("scale upside down", "The product is multiplied by r / alpha.", "Does a larger alpha make the change larger?", LORA,
        ((SCALING, "self.scaling = rank / alpha"),)),
    Bug("scaled by the root of the rank", "The product is multiplied by alpha / sqrt(r): that is rank-stabilized LoRA.",
        "Which power of the rank has the paper that you follow?", LORA, ((SCALING, "self.scaling = alpha / math.sqrt(rank)"),)),
    Bug("scale applied twice", "The product is multiplied by alpha / r twice.", "Where in your code is the scale?", LORA,
        (("low = self.dropout(x) @ self.lora_A.T", "low = self.scaling * self.dropout(x) @ self.lora_A.T"),)),
    Bug("frozen layer missing", "The output is the product alone, without the layer's own.", "What does LoRA add to what?", LORA,
        ((SUM, "return self.scaling * (low @ self.lora_B.T)"),)),
    Bug("change of full rank", "One full matrix learns instead of two thin ones.", "Which shapes have A and B?", LORA,
        ((B, "self.lora_B = nn.Parameter(torch.zeros(linear.out_features, linear.in_features))"),
         ("torch.empty(rank, linear.in_features)", "torch.empty(linear.in_features, linear.in_features)"))),
    Bug("rank ignored", "The rank is fixed in the code, whatever is asked for.", "Where does your code use the argument?", LORA,
        (("torch.empty(rank, linear.in_features)", "torch.empty(4, linear.in_features)"), (B, B.replace("rank", "4")))),
    Bug("activation between the factors", "An activation between A and B makes the change nonlinear, and no weight can have it.",
        "Could your change be merged into the weight?", LORA,
        (("low = self.dropout(x) @ self.lora_A.T", "low = torch.relu(self.dropout(x) @ self.lora_A.T)"),)),
    Bug("merged without its scale", "B A is added to the weight without alpha / r.", "What does forward add?", LORA,
        ((MERGE, MERGE.replace("self.scaling * ", "")),)),
    Bug("counted twice after merging", "After merging forward still adds the product.", "What does forward do after merge?", LORA,
        ((MERGE, MERGE.replace("        self.merged = True\n", "")),)),
    Bug("merging removes the change", "The product is switched off without being added to the weight.",
        "Where is the change after merge?", LORA, ((MERGE, "        self.merged = True\n"),)),
    Bug("unmerge adds again", "Unmerging adds the product to the weight instead of taking it away.",
        "Which sign has unmerge?", LORA, (("self.linear.weight.data -= ", "self.linear.weight.data += "),)),
    Bug("dropout left on", "Dropout is active in evaluation mode: F.dropout is on unless it is told the mode.",
        "What is the default of the argument training of F.dropout?", LORA, (("self.dropout(x)", "F.dropout(x, 0.1)"),)),
    Bug("adapter without the sum", "The output of the adapter replaces its input instead of being added to it.",
        "What should a new adapter give?", ADAPTER, (("return x + self.up(h)", "return self.up(h)"),)),
    Bug("adapter does not start as it was", "Both layers of the adapter begin with the usual random numbers.",
        "What should a new adapter give?", ADAPTER, (("nn.init.zeros_(self.up.weight)", "nn.init.normal_(self.up.weight)"),)),
    Bug("activation missing", "There is no activation between the adapter's two layers.", "What is the product of two matrices?", ADAPTER,
        (("torch.relu(self.down(x))", "self.down(x)"),)),
    Bug("bottleneck ignored", "The adapter's layers have the full width.", "How many numbers does your adapter learn?", ADAPTER,
        (("nn.Linear(d_model, bottleneck)", "nn.Linear(d_model, d_model)"), ("nn.Linear(bottleneck, d_model)", "nn.Linear(d_model, d_model)"))),
    Bug("prompt after the text", "The learned vectors follow the text instead of being before it.",
        "In which order does torch.cat get them?", PROMPT, (("[prompt, x]", "[x, prompt]"),)),
    Bug("prompt frozen", "The vectors of the prompt do not learn.", "What makes a tensor a parameter?", PROMPT,
        (("nn.Parameter(torch.randn(length, d_model) * 0.02)", "torch.randn(length, d_model) * 0.02"),)),
    Bug("prompt replaces the text", "The first tokens of the text are overwritten by the prompt.",
        "How long must the result be?", PROMPT, (("torch.cat([prompt, x], dim=1)", "torch.cat([prompt, x[:, prompt.size(1):]], dim=1)"),)),
)  # fmt: skip
