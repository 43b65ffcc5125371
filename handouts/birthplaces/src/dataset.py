"""Show training examples: `namedata` (questions and answers) or `charcorruption` (hidden spans).

python src/dataset.py namedata [--data birth_places_train.tsv] [--corpus wiki.txt]
python src/dataset.py charcorruption [--corpus wiki.txt]
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from shared import find_data, find_file, one_line_errors

BLOCK = 128
SHOWN = {"<mask>": "⁇", "<pad>": "□"}


def main() -> None:
    """Print x and y of four rows, in characters."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dataset_type", choices=["namedata", "charcorruption"])
    p.add_argument("--corpus", type=Path, help="default: wiki.txt of $HEEDFUL_DATA, else generated")
    p.add_argument("--data", type=Path, help="a TSV file of questions and answers")
    args = p.parse_args()
    with one_line_errors():
        import numpy as np

        from heedful.data import corpus_texts, load_task
        from heedful.data.corruption import hide_single_span
        from heedful.data.random import stream
        from heedful.text import train as train_tokenizer

        corpus, data = find_file(args.corpus, None), find_file(args.data, None)
        name, data_dir = ("birthplaces", None) if corpus else find_data(None, "birthplaces", "wiki.txt")
        texts = list(corpus_texts(corpus or name, data_dir=data_dir))
        tokenizer = train_tokenizer(texts, kind="char")
        if args.dataset_type == "charcorruption":
            rows = [np.array(tokenizer.encode(text).ids) for text in islice(texts, 4)]
            x, y = hide_single_span(
                rows,
                block=BLOCK,
                mask_id=tokenizer.mask_id,
                pad_id=tokenizer.pad_id,
                generator=stream(0, "show"),
            )
        else:
            from heedful.objectives.questions import answer_rows, encode_answers, encode_questions

            if data:
                pairs = [line.split("\t") for line in data.read_text("utf-8").splitlines()[:4]]
            else:
                train = load_task(name, data_dir=data_dir).splits["train"]
                pairs = [[train[i].text, train[i].answer] for i in range(4)]
            questions, answers = zip(*pairs, strict=True)
            x, y = answer_rows(
                encode_questions(tokenizer, questions).ids,
                encode_answers(tokenizer, answers).ids,
                separator=tokenizer.mask_id,
                pad_id=tokenizer.pad_id,
                width=BLOCK - 1,
            )
        pieces = np.array(
            [SHOWN.get(piece, piece) for piece in tokenizer.pieces(range(tokenizer.vocab_size))]
        )
        for a, b in zip(x, y, strict=True):
            print("x:", "".join(pieces[a]))
            print("y:", "".join("□" if t < 0 else pieces[t] for t in b))


if __name__ == "__main__":
    main()
