HEEDFUL ?= heedful
SUBMISSIONS ?= submissions

.PHONY: all starter check grade

all: starter check

starter:
	$(HEEDFUL) course starter .

check:
	$(HEEDFUL) course check solution.py --as assignment.toml
	! $(HEEDFUL) course check starter/NAME.py --as assignment.toml > /dev/null

handout.zip: starter
	rm -f $@
	cd starter && python3 -m zipfile -c ../$@ *

grade:
	$(HEEDFUL) course grade $(SUBMISSIONS) . --out grades

autograder.zip:
	$(HEEDFUL) course autograder . --out $@
