#!/bin/bash
# sbatch launchpad.sh: run the experiment on a cluster and draw its figure.
# The GPU lines depend on your site. Change "##SBATCH" to "#SBATCH" if there are GPUs, or leave the file
# as it is and set them in your shell: export SBATCH_GRES=gpu:1 SBATCH_PARTITION=gpu
#SBATCH --job-name=boolq
#SBATCH --output=boolq-%j.out
#SBATCH --ntasks=1
#SBATCH --time=60
##SBATCH --gres=gpu:1
##SBATCH --partition=gpu

cd -- "${SLURM_SUBMIT_DIR:-$(dirname "$0")}" || exit
python=${HEEDFUL_PYTHON:-../../.venv/bin/python}
exec "$python" classification.py --experiment "${EXPERIMENT:-overfit}" --small_subset "${SMALL_SUBSET:-True}" \
    --device "${DEVICE:-cuda}" --model "${MODEL:-distilbert-base-uncased}" --batch_size "${BATCH_SIZE:-64}" \
    --lr "${LR:-1e-4}" --num_epochs "${NUM_EPOCHS:-20}" ${MORE:-}
