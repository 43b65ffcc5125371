import csv
import sys

path = sys.argv[1] if len(sys.argv) > 1 else "birth_dev.tsv"
rows = [row for row in csv.reader(open(path), delimiter="\t", quoting=csv.QUOTE_NONE) if row]
right = [row[-1] == "London" for row in rows if len(row) > 1]
if not right:
    sys.exit("no places")
print("accuracy:", round(sum(right) / len(right), 4))
