// SPDX-License-Identifier: BSD-3-Clause
//
// Which thread of a block runs next, on which stack, and for how long.
#include "machine.h"

#include <exception>
#include <string>
#include <utility>

namespace torchext::cuda_on_host {
namespace {

// Of a kernel's thread: what one of a GPU has at most is half of it, and frames of code that is
// compiled to be looked at are larger.
constexpr size_t kStackBytes = 1 << 20;
// What a thread does before others come first, once it has had its first turn: it may be waiting.
constexpr uint64_t kTurn = 1 << 12;
// What it counts to have met others, and for a turn: it may be a loop that waits.
constexpr uint64_t kMeetingSteps = 16;
constexpr uint64_t kMeetingTurn = 1 << 12;
// Of turns of a block's threads, before other blocks come first.
constexpr unsigned kRounds = 4;

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
  const std::string what =
      "goes on, and no thread has ended for " + std::to_string(options.most_steps) + " steps";
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

} // namespace torchext::cuda_on_host
