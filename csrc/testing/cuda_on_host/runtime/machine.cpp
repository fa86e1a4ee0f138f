// SPDX-License-Identifier: BSD-3-Clause
//
// Launches: what is checked first, the blocks of a grid, and errors. Which thread runs next is in
// scheduler.cpp, what threads wait for in meetings.cpp.
#include "machine.h"

#include "accesses.h"
#include "architecture.h"
#include "streams.h"

#include <c10/util/Exception.h>
#include <torchext/platform.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <sstream>

namespace torchext::cuda_on_host {

thread_local Thread* current __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

// What a thread does before others come first, in blocks of code: enough for what waits for nobody.
constexpr uint64_t kFirstTurn = 1 << 16;
// The writes of a thread of which one is interrupted.
constexpr unsigned kInterruptedWrites = 3;
// Of blocks that wait for each other, in memory at once.
constexpr size_t kMostResident = 4096;

// Sets a flag while it lives.
class Flagged {
 public:
  explicit Flagged(bool& flag) : flag_(flag) {
    flag_ = true;
  }
  Flagged(const Flagged&) = delete;
  Flagged& operator=(const Flagged&) = delete;
  ~Flagged() {
    flag_ = false;
  }

 private:
  bool& flag_;
};

uint64_t volume(const dim3& size) {
  return uint64_t{size.x} * size.y * size.z;
}

} // namespace

std::string text_of(const uint3& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ")";
}

thread_local bool Machine::is_launching = false;

bool operator==(const Place& a, const Place& b) {
  return a.line == b.line && (a.file == b.file || (a.file != nullptr && b.file != nullptr &&
                                                   std::strcmp(a.file, b.file) == 0));
}

Machine& machine() {
  static auto* const only = new Machine; // never destroyed: kernels may run until the process ends
  return *only;
}

namespace {

const bool machine_forks_safely =
    hold_while_forking([] { machine().hold(); }, [] { machine().let_go(); });

} // namespace

Thread& running(const char* function) {
  TORCH_CHECK(current != nullptr, function, " can be called in a kernel only");
  return *current;
}

unsigned Machine::random(unsigned below) {
  return order_ == 0 ? 0 : static_cast<unsigned>(random_() % below);
}

bool Machine::is_on_host_stack(const void* address) const {
  // Of frames that called the launch: what a kernel is called by may be a variable there.
  constexpr size_t kFrames = 64 << 10;
  return launch_frame_ <= address && address < launch_frame_ + kFrames;
}

void Machine::check(const Configuration& configuration) const {
  const Architecture& limits = architecture();
  const auto refuse = [&](const auto&... what) {
    TORCH_CHECK(
        false,
        "kernel ",
        kernel_,
        " at ",
        text_of({configuration.file, configuration.line}),
        ": ",
        what...);
  };
  const dim3 grid = configuration.grid;
  const dim3 block = configuration.block;
  if (volume(grid) == 0 || volume(block) == 0) {
    refuse("a launch of ", text_of(grid), " blocks of ", text_of(block), " threads runs nothing");
  }
  if (volume(block) > limits.threads_per_block || block.x > limits.block.x ||
      block.y > limits.block.y || block.z > limits.block.z) {
    refuse(
        "a block has at most ",
        limits.threads_per_block,
        " threads, and ",
        text_of(limits.block),
        " in each direction, not ",
        text_of(block));
  }
  if (grid.x > limits.grid.x || grid.y > limits.grid.y || grid.z > limits.grid.z) {
    refuse("a grid has at most ", text_of(limits.grid), " blocks, not ", text_of(grid));
  }
  if (configuration.is_cooperative) {
    const unsigned warps = static_cast<unsigned>((volume(block) + kWarpSize - 1) / kWarpSize);
    const unsigned room = limits.threads_per_multiprocessor / kWarpSize / warps;
    const uint64_t most = uint64_t{std::min<unsigned>(room, limits.blocks_per_multiprocessor)} *
                          limits.multiprocessors;
    if (volume(grid) > most) {
      refuse(
          "a cooperative launch has at most ",
          most,
          " blocks of ",
          volume(block),
          " threads, which run at once, not ",
          volume(grid));
    }
  }
  check_launchable(configuration, kernel_);
}

void Machine::run(
    const char* kernel,
    const Configuration& configuration,
    void (*call)(void*),
    void* data,
    Range parameters) {
  TORCH_INTERNAL_ASSERT(current == nullptr);
  Ran ran{kernel, configuration.grid, configuration.block, configuration.shared_bytes, 0, 0};
  {
    const std::lock_guard lock(mutex_);
    run_locked(kernel, configuration, call, data, parameters);
    ran.read_bytes = traffic().read;
    ran.written_bytes = traffic().written;
  }
  if (recorder != nullptr) { // who may wait for a thread that launches
    recorder(&ran);
  }
}

void Machine::run_locked(
    const char* kernel,
    const Configuration& configuration,
    void (*call)(void*),
    void* data,
    Range parameters) {
  const Flagged launching(is_launching);
  kernel_ = kernel;
  check(configuration);
  configuration_ = &configuration;
  grid_ = configuration.grid;
  if (options.most_blocks != 0) {
    grid_.x = static_cast<unsigned>(std::min<uint64_t>(grid_.x, options.most_blocks));
  }
  call_ = call;
  data_ = data;
  parameters_ = parameters;
  launch_frame_ = static_cast<const char*>(__builtin_frame_address(0));
  host_stack_ = own_stack();
  error_.clear();
  steps_ = 0;
  ++launches_;
  order_ = options.order < 0 ? launches_ : static_cast<uint64_t>(options.order);
  random_.seed(static_cast<unsigned>(order_));
  layout_.clear();
  layout_.add(nullptr, configuration.shared_bytes, 16);
  begin_accesses();
  run_grid();
  if (error_.empty()) {
    error_ = peek_error();
  }
  end_accesses();
  configuration_ = nullptr;
  TORCH_CHECK(error_.empty(), error_);
}

void Machine::run_grid() {
  const uint64_t count = volume(grid_);
  // An order of all blocks that takes no memory: steps that share no factor with their number.
  uint64_t first = 0;
  uint64_t step = 1;
  if (order_ != 0) {
    first = random_() % count;
    do {
      step = 1 + random_() % count;
    } while (std::gcd(step, count) != 1);
  }
  const auto number_of = [&](uint64_t i) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(i) * step + first) % count);
  };
  uint64_t started = 0;
  size_t turn = 0;
  size_t turns = 0; // of blocks, since one began
  const auto start = [&] {
    turns = 0;
    return start_block(number_of(started++));
  };
  while (error_.empty() && (started < count || !resident_.empty())) {
    // A block that can go on, if there is one: one more where all others wait, or gave way in turn.
    Block* block = nullptr;
    const bool may_start = started < count && resident_.size() < kMostResident;
    const bool all_wait =
        why_ == Ended::kStalled || (why_ == Ended::kGaveWay && turns >= resident_.size());
    if (resident_.empty() || (may_start && all_wait)) {
      block = start();
    } else {
      for (size_t i = 0; i < resident_.size() && block == nullptr; ++i) {
        Block& candidate = *resident_[(turn + i) % resident_.size()];
        if (candidate.at_grid_barrier + candidate.ended < candidate.size) {
          block = &candidate;
          turn = (turn + i + 1) % resident_.size();
        }
      }
    }
    if (block == nullptr) {
      if (started < count) {
        block = start();
      } else {
        for (const auto& waiting : resident_) {
          ++waiting->epoch;
          for (Thread& thread : waiting->threads) {
            if (thread.wait == Wait::kGrid) {
              make_ready(thread);
            }
          }
          waiting->at_grid_barrier = 0;
        }
        continue;
      }
    }
    ++turns;
    has_more_blocks_ = started < count || resident_.size() > 1;
    enter(*block);
    if (why_ == Ended::kBlock) {
      const auto found = std::find_if(
          resident_.begin(), resident_.end(), [&](const auto& b) { return b.get() == block; });
      spare_.push_back(std::move(*found));
      resident_.erase(found);
    }
  }
  // What an error left where it was is forgotten: a kernel has nothing that must be let go.
  std::move(resident_.begin(), resident_.end(), std::back_inserter(spare_));
  resident_.clear();
  stacks_ = all_stacks_;
  why_ = Ended::kBlock;
}

Block* Machine::start_block(uint64_t number) {
  if (spare_.empty()) {
    spare_.push_back(std::make_unique<Block>());
  }
  resident_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  Block& block = *resident_.back();
  const dim3 size = configuration_->block;
  block.index.x = static_cast<unsigned>(number % grid_.x);
  block.index.y = static_cast<unsigned>(number / grid_.x % grid_.y);
  block.index.z = static_cast<unsigned>(number / grid_.x / grid_.y);
  block.size = static_cast<unsigned>(volume(size));
  block.at_barrier = block.at_grid_barrier = block.ended = block.epoch = 0;
  block.active_warps = block.tired_warps = 0;
  block.interrupted = random(block.size);
  block.writes_left = order_ == 0 ? 0 : 1 + random(kInterruptedWrites);
  block.threads.resize(block.size);
  const unsigned warps = (block.size + kWarpSize - 1) / kWarpSize;
  block.warps.resize(warps);
  block.ready_warps = warps == kWarpSize ? kAllLanes : (1u << warps) - 1;
  block.running = random(warps);
  uint3 index{0, 0, 0};
  for (unsigned i = 0; i < block.size; ++i) {
    Thread& thread = block.threads[i];
    thread.context = nullptr;
    thread.stack = {nullptr, nullptr};
    thread.block = &block;
    thread.index = index;
    thread.number = i;
    thread.wait = Wait::kNothing;
    thread.lane_ticket = 0;
    thread.steps = thread.counted = 0;
    thread.turn_end = kFirstTurn;
    if (++index.x == size.x) {
      index.x = 0;
      if (++index.y == size.y) {
        index.y = 0;
        ++index.z;
      }
    }
  }
  for (unsigned i = 0; i < warps; ++i) {
    Warp& warp = block.warps[i];
    const unsigned lanes = std::min(kWarpSize, block.size - i * kWarpSize);
    warp.threads = &block.threads[i * kWarpSize];
    warp.there = lanes == kWarpSize ? kAllLanes : (1u << lanes) - 1;
    warp.ready = warp.there;
    warp.tired = warp.ended = warp.waiting = warp.active = 0;
    warp.first = random(kWarpSize);
    warp.is_upward = random(2) == 0;
    std::memset(warp.known, 0, sizeof(warp.known));
  }
  block.shared.begin(layout_);
  return &block;
}

void Machine::fail(const std::string& what, std::optional<Place> place) {
  const Place launch{configuration_->file, configuration_->line};
  fail_with(
      what,
      (place.has_value() ? "" : "in the launch ") + ("at " + text_of(place.value_or(launch))));
}

void Machine::fail_at(const std::string& what, const void* code) {
  fail_with(what, "at " + place_of_code(code));
}

void Machine::fail_with(const std::string& what, const std::string& place) {
  std::string who;
  if (current != nullptr) {
    who = ", block " + text_of(current->block->index) + ", thread " + text_of(current->index);
  }
  error_ = described(who, what, place);
  // The stack that this runs on may be one that was let go already: nobody takes it any more.
  leave(Ended::kLaunch);
}

std::string Machine::described(
    const std::string& who, const std::string& what, const std::string& place) const {
  std::ostringstream out;
  out << "kernel " << kernel_ << who << ": " << what << ", " << place;
  if (order_ != 0) {
    out << " (warps and blocks in order " << order_ << ")";
  }
  return out.str();
}

} // namespace torchext::cuda_on_host
