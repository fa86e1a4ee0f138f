// SPDX-License-Identifier: BSD-3-Clause
//
// Barriers, and what lanes of a warp tell each other: who is there, what each gets, and who waits in
// vain.
#include "machine.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>

namespace torchext::cuda_on_host {
namespace {

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

} // namespace

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

} // namespace torchext::cuda_on_host
