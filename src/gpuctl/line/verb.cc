#include "gpuctl/line/verb.h"

#include <array>

namespace gpuctl::cli {

namespace {
constexpr std::array kVerbs{
    Verb{"create-slice", "Create a slice: a named share of every GPU", "gpuctl create-slice ls --reserve 8",
         declare_create_slice},
    Verb{"delete-slice", "Delete a slice that is not in use", "gpuctl delete-slice ls", declare_delete_slice},
    Verb{"set", "Change a slice, also while its kernels run", "gpuctl set batch max=40 weight=50", declare_set},
    Verb{"apply", "Make all slices as a file says", "gpuctl apply slices.toml --dry-run", declare_apply},
    Verb{"save", "Keep slices for the next boot", "gpuctl save batch", declare_save},
    Verb{"list", "List the slices as a tree", "gpuctl list", declare_list},
    Verb{"mount", "Show the slices as directories, their settings as files", "gpuctl mount /run/gpu", declare_mount},
    Verb{"show", "Show one slice and the programs in it", "gpuctl show batch", declare_show},
    Verb{"run", "Run a program in a slice", "gpuctl run --slice batch python3 train.py --epochs 3", declare_run},
    Verb{"kill", "End a program, or all programs of a slice, without harm to others", "gpuctl kill batch --signal INT",
         declare_kill},
    Verb{"freeze", "Give the programs of a slice no SMs until it is thawed", "gpuctl freeze batch", declare_freeze},
    Verb{"thaw", "Give a frozen slice what is due to it again", "gpuctl thaw batch", declare_thaw},
    Verb{"move", "Move a program that runs to another slice", "gpuctl move 4711 batch", declare_move},
    Verb{"top", "Watch devices, slices and programs live", "gpuctl top --interval 0.5", declare_top},
    Verb{"events", "Say what happened to slices and programs, and what happens", "gpuctl events batch --follow",
         declare_events},
    Verb{"usage", "Say what programs used of the GPUs, by slice and user", "gpuctl usage --since 7d --slice batch",
         declare_usage},
    Verb{"explain", "Say how each kernel of a program is run, and why", "gpuctl explain 4711", declare_explain},
    Verb{"advise", "Say whether a job may come, and which isolation suits a slice",
         "gpuctl advise --reserve 8 --latency 5ms", declare_advise},
    Verb{"forget-kernels", "Forget what was learnt about kernels", "gpuctl forget-kernels --user alice",
         declare_forget_kernels},
    Verb{"rewrite", "Rewrite the PTX in a file, and say how each kernel would be run",
         "gpuctl rewrite ./a.out -o rewritten", declare_rewrite},
    Verb{"status", "Show the daemon, its devices and what works here", "gpuctl status", declare_status},
    Verb{"doctor", "Say what is wrong on this machine or with a program, and what to do", "gpuctl doctor",
         declare_doctor},
    Verb{"cdi", "Make devices of the slices, for containers", "gpuctl cdi generate --output /run/cdi/gpuctl.json",
         declare_cdi},
    Verb{"k8s", "Print this node's slices as Kubernetes wants them", "gpuctl k8s resourceslice --node gpu-1",
         declare_k8s},
    Verb{"monitor", "Record what runs, to replay it with simulate", "gpuctl monitor --record trace.toml --seconds 60",
         declare_monitor},
    Verb{"simulate", "Compare policies on a described workload, without a GPU",
         "gpuctl simulate fleet.toml --policy frs,srt,rr --seeds 20", declare_simulate},
};
}  // namespace

std::span<const Verb> verbs() {
  return kVerbs;
}

}  // namespace gpuctl::cli
