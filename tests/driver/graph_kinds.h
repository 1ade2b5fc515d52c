// The kinds of graphs of graph_storm.cc.
#pragma once

#include <utility>

#include "graph_work.h"

/// One kind of graph; a round launches it and says whether the result is right.
class Kind {
 public:
  explicit Kind(CUstream on) : stream(on) {}
  virtual ~Kind() = default;
  virtual bool round(unsigned seed) = 0;

 protected:
  void launch(CUgraphExec executable) const { DRIVER_CHECK(cuGraphLaunch(executable, stream)); }
  void wait() const { DRIVER_CHECK(cuStreamSynchronize(stream)); }
  CUstream stream;
};

/// Launched three times without a wait, each time on what the one before left, with an ordinary launch in between.
class Chain : public Kind {
 public:
  explicit Chain(CUstream on) : Kind(on), expected_(kBlocks * kThreads) {
    executable_ = instantiate_and_destroy(capture(stream, [&] {
      step(state_, 1, stream);
      step(state_, 20, stream);
      step(state_, 300, stream);
    }));
  }
  bool round(unsigned seed) override {
    for (unsigned i = 0; i < 3; ++i) {
      launch(executable_);
      if (i == 1) step(state_, seed, stream);
      for (const unsigned add : {1u, 20u, 300u}) step(expected_, add);
      if (i == 1) step(expected_, seed);
    }
    download(state_, stream);
    wait();
    return state_.holds(expected_);
  }

 private:
  Buffer state_;
  Words expected_;
  CUgraphExec executable_;
};

/// Two branches of kernels that may run at the same time, and what needs both.
class Branches : public Kind {
 public:
  explicit Branches(CUstream on) : Kind(on) {
    DRIVER_CHECK(cuStreamCreate(&side_, CU_STREAM_NON_BLOCKING));
    DRIVER_CHECK(cuEventCreate(&fork_, CU_EVENT_DISABLE_TIMING));
    DRIVER_CHECK(cuEventCreate(&join_, CU_EVENT_DISABLE_TIMING));
    executable_ = instantiate_and_destroy(capture_branches(4));
  }
  bool round(unsigned seed) override { return launch_branches(seed, 4); }

 protected:
  CUgraph capture_branches(unsigned add) {
    return capture(stream, [&] {
      upload(a_, stream);
      upload(b_, stream);
      DRIVER_CHECK(cuEventRecord(fork_, stream));
      DRIVER_CHECK(cuStreamWaitEvent(side_, fork_, 0));
      step(a_, add, stream);
      step(b_, 50, side_);
      step(b_, 600, side_);
      DRIVER_CHECK(cuEventRecord(join_, side_));
      DRIVER_CHECK(cuStreamWaitEvent(stream, join_, 0));
      combine(a_, b_, stream);
      download(a_, stream);
    });
  }
  bool launch_branches(unsigned seed, unsigned add) {
    a_.fill(seed);
    b_.fill(~seed);
    Words a = counted_from(seed), b = counted_from(~seed);
    launch(executable_);
    step(a, add);
    step(b, 50);
    step(b, 600);
    for (unsigned i = 0; i < a.size(); ++i) a[i] = a[i] * 31 + b[i];
    wait();
    return a_.holds(a);
  }
  CUgraphExec executable_;

 private:
  CUstream side_ = nullptr;
  CUevent fork_ = nullptr, join_ = nullptr;
  Buffer a_, b_;
};

/// The same, captured anew for each round but the first into the executable graph that is there.
class UpdatedBranches : public Branches {
 public:
  using Branches::Branches;
  bool round(unsigned seed) override {
    if (std::exchange(first_, false)) return Branches::round(seed);
    update_and_destroy(executable_, capture_branches(seed));
    return launch_branches(seed, seed);
  }

 private:
  bool first_ = true;
};

/// Nodes made one by one, a child graph among them; each round changes a kernel's parameters and disables a node or
/// not.
class Nodes : public Kind {
 public:
  explicit Nodes(CUstream on) : Kind(on) {
    DRIVER_CHECK(cuGraphCreate(&graph_, 0));
    CUcontext context = nullptr;
    DRIVER_CHECK(cuCtxGetCurrent(&context));
    CUDA_MEMSET_NODE_PARAMS zero{.dst = data_.device, .value = 5, .elementSize = 4, .width = data_.words, .height = 1};
    CUgraphNode before = nullptr, child_node = nullptr;
    DRIVER_CHECK(cuGraphAddMemsetNode(&before, graph_, nullptr, 0, &zero, context));
    with_params(7, [&](auto& params) { DRIVER_CHECK(cuGraphAddKernelNode(&changed_, graph_, &before, 1, &params)); });
    CUgraph child = capture(stream, [&] {
      step(data_, 80, stream);
      step(data_, 900, stream);
    });
    DRIVER_CHECK(cuGraphAddChildGraphNode(&child_node, graph_, &changed_, 1, child));
    DRIVER_CHECK(cuGraphDestroy(child));
    with_params(11,
                [&](auto& params) { DRIVER_CHECK(cuGraphAddKernelNode(&toggled_, graph_, &child_node, 1, &params)); });
    DRIVER_CHECK(cuGraphInstantiate(&executable_, graph_, 0));
  }
  bool round(unsigned seed) override {
    with_params(seed,
                [&](auto& params) { DRIVER_CHECK(cuGraphExecKernelNodeSetParams(executable_, changed_, &params)); });
    DRIVER_CHECK(cuGraphNodeSetEnabled(executable_, toggled_, seed % 2));
    launch(executable_);
    Words expected(data_.words, 5);
    for (const unsigned add : {seed, 80u, 900u}) step(expected, add);
    if (seed % 2) step(expected, 11);
    download(data_, stream);
    wait();
    return data_.holds(expected) && graph_is_the_programs();
  }

 private:
  template <class Use>
  void with_params(unsigned add, Use use) {
    unsigned iterations = kIterations;
    void* values[] = {&data_.device, &add, &iterations};
    CUDA_KERNEL_NODE_PARAMS params{.func = step_kernel,
                                   .gridDimX = kBlocks,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = kThreads,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .kernelParams = values};
    use(params);
  }
  /// Whatever became of the executable graph.
  bool graph_is_the_programs() const {
    CUDA_KERNEL_NODE_PARAMS params{};
    DRIVER_CHECK(cuGraphKernelNodeGetParams(toggled_, &params));
    return params.func == step_kernel && params.gridDimX == kBlocks &&
           *static_cast<unsigned*>(params.kernelParams[1]) == 11;
  }

  Buffer data_;
  CUgraph graph_ = nullptr;
  CUgraphNode changed_ = nullptr, toggled_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

/// Captured anew each round, with other values, into the executable graph that is there.
class Updated : public Kind {
 public:
  using Kind::Kind;
  bool round(unsigned seed) override {
    const CUgraph graph = capture(stream, [&] {
      upload(data_, stream);
      step(data_, seed, stream);
      step(data_, seed + 1, stream);
      download(data_, stream);
    });
    data_.fill(seed);
    if (!executable_) {
      executable_ = instantiate_and_destroy(graph);
    } else {
      update_and_destroy(executable_, graph);
    }
    launch(executable_);
    Words expected = counted_from(seed);
    step(expected, seed);
    step(expected, seed + 1);
    wait();
    return data_.holds(expected);
  }

 private:
  Buffer data_;
  CUgraphExec executable_ = nullptr;
};

/// A kernel without another form between two that have one. Made executable for each round.
class Mixed : public Kind {
 public:
  using Kind::Kind;
  bool round(unsigned seed) override {
    const CUgraphExec executable = instantiate_and_destroy(capture(stream, [&] {
      upload(data_, stream);
      step(data_, 13, stream);
      wait_and_step(data_, seed, stream);
      step(data_, 17, stream);
      download(data_, stream);
    }));
    data_.fill(seed);
    launch(executable);
    DRIVER_CHECK(cuGraphExecDestroy(executable));  // under way: the driver waits with that
    Words expected = counted_from(seed);
    for (const unsigned add : {13u, seed, 17u}) step(expected, add);
    wait();
    return data_.holds(expected);
  }

 private:
  Buffer data_;
};

/// A graph that was launched before becomes part of another one, by capturing its launch.
class Nested : public Kind {
 public:
  explicit Nested(CUstream on) : Kind(on) {
    inner_ = instantiate_and_destroy(capture(stream, [&] { step(data_, 19, stream); }));
    data_.fill(0);
    upload(data_, stream);
  }
  bool round(unsigned seed) override {
    launch(inner_);
    const CUgraphExec outer = instantiate_and_destroy(capture(stream, [&] {
      launch(inner_);
      step(data_, seed, stream);
    }));
    launch(outer);
    launch(outer);
    for (const unsigned add : {19u, 19u, seed, 19u, seed}) step(expected_, add);
    download(data_, stream);
    wait();
    DRIVER_CHECK(cuGraphExecDestroy(outer));
    return data_.holds(expected_);
  }

 private:
  Buffer data_;
  Words expected_ = counted_from(0);
  CUgraphExec inner_;
};
