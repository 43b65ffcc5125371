import argparse


def evaluate_places(filepath, predicted_places):
    """The course's own utility, and a script around it."""
    with open(filepath, encoding="utf-8") as fin:
        lines = [x.strip().split("\t") for x in fin]
        if len(lines[0]) == 1:
            print("No gold birth places provided; returning (0,0)")
            return (0, 0)
        lines = [x for x in lines if len(x) == 2]
        true_places = [x[1] for x in lines]
        total = len(true_places)
        assert total == len(predicted_places)
        return (
            float(total),
            float(len(list(filter(lambda x: x[0] == x[1], zip(true_places, predicted_places))))),
        )


def main():
    argp = argparse.ArgumentParser()
    argp.add_argument("--eval_corpus_path", default="birth_dev.tsv")
    args = argp.parse_args()
    with open(args.eval_corpus_path) as fin:
        total, correct = evaluate_places(
            args.eval_corpus_path, ["London"] * sum(1 for line in fin if line.strip())
        )
    print("Correct: {} out of {}: {}%".format(correct, total, correct / total * 100))


if __name__ == "__main__":
    main()
