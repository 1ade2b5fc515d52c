#!/bin/sh
# Stands in for nvidia-cuda-mps-control, which needs a GPU: it starts in its directory, and takes "quit".
pid_file=$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid
if [ "$1" = -f ]; then
  echo $$ >"$pid_file"
  trap 'rm "$pid_file"; exit' TERM
  while :; do sleep 0.05; done
fi
read -r command
if [ "$command" = quit ]; then kill "$(cat "$pid_file")"; fi
exit 0
