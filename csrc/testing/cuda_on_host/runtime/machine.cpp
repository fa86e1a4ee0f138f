// SPDX-License-Identifier: BSD-3-Clause
#include "machine.h"

#include "accesses.h"
#include "architecture.h"
#include "streams.h"

#include <c10/util/Exception.h>
#include <torchext/platform.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <numeric>
#include <sstream>
#include <utility>

namespace torchext::cuda_on_host {

thread_local Thread* current __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

// Of a kernel's thread: what one of a GPU has at most is half of it, and frames of code that is
// compiled to be looked at are larger.
constexpr size_t kStackBytes = 1 << 20;
// What a thread does before others come first, in blocks of code: enough for what waits for nobody,
// and less for what may be waiting.
constexpr uint64_t kFirstTurn = 1 << 16;
constexpr uint64_t kTurn = 1 << 12;
// What it counts to have met others, and for a turn: it may be a loop that waits.
constexpr uint64_t kMeetingSteps = 16;
constexpr uint64_t kMeetingTurn = 1 << 12;
// Of turns of a block's threads, before other blocks come first.
constexpr unsigned kRounds = 4;
// The writes of a thread of which one is interrupted.
constexpr unsigned kInterruptedWrites = 3;
// Of blocks that wait for each other, in memory at once.
constexpr size_t kMostResident = 4096;

// "0-7, 12"
std::string lanes_text(unsigned lanes) {
  std::ostringstream out;
  const char* comma = "";
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((lanes >> lane & 1) == 0) {
      continue;
    }
    out << std::exchange(comma, ", ") << lane;
    const unsigned first = lane;
    while (lane + 1 < kWarpSize && (lanes >> (lane + 1) & 1) != 0) {
      ++lane;
    }
    if (lane != first) {
      out << '-' << lane;
    }
  }
  return out.str();
}

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

// The lowest lane from `first` on, around, in one of two directions.
unsigned lane_from(unsigned lanes, unsigned first, bool is_upward) {
  if (is_upward) {
    const unsigned turned = (lanes >> first) | (lanes << (kWarpSize - first) % kWarpSize);
    return (first + static_cast<unsigned>(__builtin_ctz(first == 0 ? lanes : turned))) % kWarpSize;
  }
  const unsigned turn = (kWarpSize - 1 - first) % kWarpSize;
  const unsigned turned = turn == 0 ? lanes : (lanes << turn) | (lanes >> (kWarpSize - turn));
  return (first + kWarpSize - static_cast<unsigned>(__builtin_clz(turned))) % kWarpSize;
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

void Machine::enter(Block& block) {
  why_ = Ended::kBlock;
  block.rounds = 0;
  if (Thread* first = next(block)) {
    begin_or_resume(*first, &host_);
    current = nullptr;
  }
}

void Machine::leave(Ended why) {
  why_ = why;
  current = nullptr;
  Context nobody = nullptr;
  switch_context(&nobody, host_, host_stack_);
  __builtin_unreachable();
}

Thread* Machine::take(Block& block, unsigned warp, unsigned lanes) {
  Warp& from = block.warps[warp];
  block.running = warp;
  return take(block, from.threads[lane_from(lanes, from.first, from.is_upward)]);
}

Thread* Machine::take(Block& block, Thread& thread) {
  Warp& from = thread.warp();
  from.ready &= ~(1u << thread.lane());
  if (from.ready == 0) {
    block.ready_warps &= ~(1u << thread.number / kWarpSize);
  }
  return &thread;
}

// All threads that can run have had their turn, and have it again. Whether other blocks come first.
bool Machine::end_round(Block& block) {
  for (unsigned warps = block.tired_warps; warps != 0; warps &= warps - 1) {
    Warp& warp = block.warps[__builtin_ctz(warps)];
    warp.ready |= std::exchange(warp.tired, 0);
  }
  block.ready_warps |= std::exchange(block.tired_warps, 0);
  return ++block.rounds >= kRounds && has_more_blocks_;
}

// The thread of the block that runs next; null where none can, and the reason in why_.
Thread* Machine::next(Block& block) {
  for (;;) {
    if (const unsigned lanes = block.warps[block.running].ready) {
      return take(block, block.running, lanes);
    }
    if (block.active_warps != 0 && settle_active(block)) {
      continue;
    }
    if (unsigned warps = block.ready_warps) {
      unsigned skipped = random(static_cast<unsigned>(__builtin_popcount(warps)));
      while (skipped-- > 0) {
        warps &= warps - 1;
      }
      block.running = static_cast<unsigned>(__builtin_ctz(warps));
      continue;
    }
    if (block.tired_warps != 0) {
      if (end_round(block)) {
        why_ = Ended::kGaveWay;
        return nullptr;
      }
      continue;
    }
    if (block.ended == block.size) {
      why_ = Ended::kBlock;
      return nullptr;
    }
    if (all_are_at_barrier(block)) {
      release(block);
      continue;
    }
    if (block.at_grid_barrier == block.size) {
      why_ = Ended::kStalled;
      return nullptr;
    }
    fail_of_stall(block);
  }
}

void Machine::begin_or_resume(Thread& next, Context* saved) {
  current = &next;
  Context to = std::exchange(next.context, nullptr);
  if (to == nullptr) {
    next.stack = take_stack();
    to = start_of(next.stack, &Machine::thread_main);
  }
  switch_context(saved, to, next.stack);
}

// Runs one thread after another, as long as they wait for nobody, on one stack.
void Machine::thread_main() {
  arrive_on_stack();
  Machine& all = machine();
  for (;;) {
    Thread& thread = *current;
    std::string thrown;
    try {
      all.call_(all.data_);
    } catch (const std::exception& error) {
      thrown = error.what();
    } catch (...) {
      thrown = "something that is no std::exception";
    }
    if (!thrown.empty()) {
      all.fail("throws, which no kernel can: " + thrown);
    }
    all.ended(thread);
    Block& block = *thread.block;
    Thread* next = all.next(block);
    if (next == nullptr) {
      all.stacks_.push_back(thread.stack);
      all.leave(all.why_);
    }
    if (next->context != nullptr) {
      all.stacks_.push_back(thread.stack);
      Context nobody = nullptr;
      all.begin_or_resume(*next, &nobody);
    }
    next->stack = thread.stack;
    current = next;
  }
}

Stack Machine::take_stack() {
  if (stacks_.empty()) {
    all_stacks_.push_back(new_stack(kStackBytes));
    return all_stacks_.back();
  }
  const Stack stack = stacks_.back();
  stacks_.pop_back();
  return stack;
}

// Of a thread that waited for others, who came.
void Machine::make_ready(Thread& thread) {
  thread.wait = Wait::kNothing;
  thread.steps += kMeetingSteps;
  thread.shorten_turn(kMeetingTurn);
  if (thread.steps >= thread.turn_end) {
    make_tired(thread);
    return;
  }
  thread.warp().ready |= 1u << thread.lane();
  thread.block->ready_warps |= 1u << thread.number / kWarpSize;
}

void Machine::make_tired(Thread& thread) {
  thread.turn_end = thread.steps + kTurn;
  thread.warp().tired |= 1u << thread.lane();
  thread.block->tired_warps |= 1u << thread.number / kWarpSize;
}

void Machine::check_steps(const void* code) {
  Thread& thread = *current;
  steps_ += thread.steps - std::exchange(thread.counted, thread.steps);
  if (steps_ < options.most_steps) {
    return;
  }
  const std::string what = "goes on, and no thread has ended for " +
      std::to_string(options.most_steps) + " steps";
  if (code != nullptr) {
    fail_at(what, code);
  }
  fail(what, thread.place);
}

void Machine::suspend() {
  Thread& thread = *current;
  thread.block->shared.check_written_twice(thread);
  check_steps(nullptr);
  const bool can_run = (thread.warp().ready >> thread.lane() & 1) != 0;
  if (thread.wait == Wait::kNothing && can_run) { // all others were there
    take(*thread.block, thread);
    return;
  }
  give_over(thread);
}

void Machine::give_way() {
  current->block->shared.check_written_twice(*current);
  make_tired(*current);
  give_over(*current);
}

void Machine::give_over(Thread& thread) {
  Thread* next = this->next(*thread.block);
  if (next == &thread) {
    return;
  }
  if (next != nullptr) {
    begin_or_resume(*next, &thread.context);
  } else {
    current = nullptr;
    switch_context(&thread.context, host_, host_stack_);
  }
}

void Machine::ended(Thread& thread) {
  Block& block = *thread.block;
  block.shared.check_written_twice(thread);
  steps_ = 0;
  thread.wait = Wait::kEnded;
  ++block.ended;
  Warp& warp = thread.warp();
  warp.ended |= 1u << thread.lane();
  // Lanes may wait for it that need not, now.
  unsigned waiting = warp.waiting;
  for (; waiting != 0; waiting &= waiting - 1) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(waiting));
    if ((warp.waiting >> lane & 1) != 0) { // not settled with one before it
      settle_meeting(warp, warp.threads[lane].mask, warp.threads[lane].name);
    }
  }
}

void Machine::arrive(Thread& thread) {
  thread.wait = Wait::kBlock;
  ++thread.block->at_barrier;
}

void Machine::arrive_at_grid_barrier(Thread& thread) {
  thread.wait = Wait::kGrid;
  ++thread.block->at_grid_barrier;
}

bool Machine::all_are_at_barrier(const Block& block) const {
  const unsigned gone = options.may_leave_before_barriers ? block.ended : 0;
  return block.at_barrier != 0 && block.at_barrier + gone == block.size;
}

// All threads are at a barrier: if it is one.
void Machine::release(Block& block) {
  const Thread* first = nullptr;
  int count = 0;
  for (Thread& thread : block.threads) {
    if (thread.wait != Wait::kBlock) { // it has left
      continue;
    }
    first = first == nullptr ? &thread : first;
    if (!(thread.place == first->place)) {
      current = &thread;
      fail(
          std::string("waits at ") + thread.name + "() while thread " + text_of(first->index) +
              " waits at another, " + text_of(first->place),
          thread.place);
    }
    count += thread.condition;
  }
  for (Thread& thread : block.threads) {
    if (thread.wait == Wait::kBlock) {
      thread.bits = static_cast<uint64_t>(count);
      make_ready(thread);
    }
  }
  block.at_barrier = 0;
  ++block.epoch;
}

// Of each warp that has nothing else to do, the lanes that asked at one place which are active.
bool Machine::settle_active(Block& block) {
  bool is_settled = false;
  for (unsigned warps = block.active_warps; warps != 0; warps &= warps - 1) {
    const auto number = static_cast<unsigned>(__builtin_ctz(warps));
    Warp& warp = block.warps[number];
    if (warp.ready != 0) {
      continue;
    }
    const Thread& first = warp.threads[__builtin_ctz(warp.active)];
    unsigned lanes = 0;
    for (unsigned left = warp.active; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(__builtin_ctz(left));
      if (warp.threads[lane].place == first.place) {
        lanes |= 1u << lane;
      }
    }
    warp.active &= ~lanes;
    if (warp.active == 0) {
      block.active_warps &= ~(1u << number);
    }
    for (unsigned left = lanes; left != 0; left &= left - 1) {
      Thread& thread = warp.threads[__builtin_ctz(left)];
      thread.bits = lanes;
      make_ready(thread);
    }
    is_settled = true;
  }
  return is_settled;
}

void Machine::meet(Thread& thread) {
  Warp& warp = thread.warp();
  const unsigned own = 1u << thread.lane();
  if ((thread.mask & own) == 0) {
    fail(
        std::string("calls ") + thread.name + "() with a mask without its own lane, " +
            std::to_string(thread.lane()),
        thread.place);
  }
  thread.wait = Wait::kLanes;
  warp.waiting |= own;
  settle_meeting(warp, thread.mask, thread.name);
}

// Whether all lanes of a mask that have not ended are there; they then go on.
bool Machine::settle_meeting(Warp& warp, unsigned mask, const char* name) {
  const unsigned needed = mask & warp.alive();
  if ((warp.waiting & needed) != needed) {
    return false;
  }
  for (unsigned left = needed; left != 0; left &= left - 1) {
    const Thread& thread = warp.threads[__builtin_ctz(left)];
    if (thread.mask != mask || std::strcmp(thread.name, name) != 0) {
      return false;
    }
  }
  complete(warp, needed);
  return true;
}

void Machine::complete(Warp& warp, unsigned lanes) {
  uint64_t given[kWarpSize] = {};
  unsigned true_lanes = 0;
  for (unsigned left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(left));
    given[lane] = warp.threads[lane].bits;
    true_lanes |= static_cast<unsigned>(warp.threads[lane].condition) << lane;
  }
  warp.waiting &= ~lanes;
  const Meeting meeting = warp.threads[__builtin_ctz(lanes)].meeting;
  if (meeting == Meeting::kBarrier) {
    for (unsigned left = lanes; left != 0; left &= left - 1) {
      ++warp.threads[__builtin_ctz(left)].lane_ticket;
    }
    unsigned known[kWarpSize] = {};
    for (unsigned left = lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(__builtin_ctz(left));
      for (unsigned other = 0; other < kWarpSize; ++other) {
        known[other] = std::max(known[other], warp.known[lane][other]);
      }
      known[lane] = std::max(known[lane], warp.threads[lane].lane_ticket);
    }
    for (unsigned left = lanes; left != 0; left &= left - 1) {
      std::memcpy(warp.known[__builtin_ctz(left)], known, sizeof(known));
    }
  }
  for (unsigned left = lanes; left != 0; left &= left - 1) {
    Thread& thread = warp.threads[__builtin_ctz(left)];
    switch (meeting) {
      case Meeting::kBarrier:
        break;
      case Meeting::kExchange:
        // torch's own kernels read some that they do not use
        if ((lanes >> thread.source & 1) == 0 && !options.may_read_absent_lanes &&
            !is_of_torch(thread.place)) {
          current = &thread;
          fail(
              std::string(thread.name) + "() reads lane " + std::to_string(thread.source) +
                  ", which takes no part in it: the lanes that do are " + lanes_text(lanes),
              thread.place);
        }
        thread.bits = (lanes >> thread.source & 1) != 0 ? given[thread.source] : ~uint64_t{0};
        break;
      case Meeting::kBallot:
        thread.bits = true_lanes;
        break;
      case Meeting::kGather:
        std::memcpy(thread.gathered, given, sizeof(given));
        thread.bits = lanes;
        break;
    }
    make_ready(thread);
  }
}

void Machine::fail_of_stall(Block& block) {
  // Who waits for the block, who is gone, and who waits for lanes that do not come.
  for (Thread& thread : block.threads) {
    if (thread.wait != Wait::kLanes) {
      continue;
    }
    const Warp& warp = thread.warp();
    current = &thread;
    fail(
        std::string("waits at ") + thread.name + "() for the lanes " + lanes_text(thread.mask) +
            ", of which " + lanes_text(thread.mask & warp.alive() & ~warp.waiting) +
            " wait elsewhere",
        thread.place);
  }
  for (Thread& thread : block.threads) {
    if (thread.wait != Wait::kBlock && thread.wait != Wait::kGrid) {
      continue;
    }
    current = &thread;
    std::ostringstream what;
    what << "waits at " << thread.name << "()";
    if (block.ended != 0) {
      what << ", and " << block.ended << " of the block's " << block.size
           << " threads have left the kernel before it";
    } else {
      what << " while other threads of the block wait for the whole grid";
    }
    fail(what.str(), thread.place);
  }
  TORCH_INTERNAL_ASSERT(false);
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
