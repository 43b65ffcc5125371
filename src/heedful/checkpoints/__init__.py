"""One table a family (bert, distilbert, roberta, gpt2, t5): read and write Hub folders."""
