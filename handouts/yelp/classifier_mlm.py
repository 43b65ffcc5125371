"""Yelp with TinyBERT, jointly with masked language modeling: loss = classification + mlm_alpha x MLM.

python classifier_mlm.py (options of classifier.py) --logging_steps 50 --train_data_file unlabeled.txt
  --block_size 128 --mlm_alpha 0.3 --line_by_line
"""

from __future__ import annotations

from classifier import main

if __name__ == "__main__":
    main(mlm=True)
