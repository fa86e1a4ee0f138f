// SPDX-License-Identifier: BSD-3-Clause
//
// The machine that runs a launch: one block after another, each thread on a stack of its own from
// where it first waits. A warp that was picked at random runs until all of it waits for the block:
// warps drift apart as far as the barriers let them, and lanes as far as theirs do. One launch runs
// at a time, on the thread that made it.
#pragma once

#include "fiber.h"
#include "shared_memory.h"

#include <torchext/cuda_on_host/launch.h>
#include <torchext/cuda_on_host/threads.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace torchext::cuda_on_host {

/// A place in a source.
struct Place {
  const char* file = nullptr;
  int line = 0;

  friend bool operator==(const Place& a, const Place& b);
};

enum class Wait : uint8_t {
  kNothing, // has not begun, or can go on
  kLanes,   // for lanes of its warp
  kActive,  // for its warp to have nothing else to do
  kBlock,
  kGrid,
  kEnded,
};

/// What lanes that meet do with what they bring.
enum class Meeting : uint8_t { kBarrier, kExchange, kBallot, kGather };

struct Block;
struct Warp;

struct Thread {
  Context context; // where it goes on; null before it begins and while it runs
  Stack stack;
  Block* block;
  uint3 index;
  unsigned number; // in the block
  Wait wait;

  // While it waits
  Meeting meeting;
  bool condition;
  unsigned mask;
  unsigned source;
  const char* name; // of the function that it called
  Place place;
  uint64_t bits; // what it brings, and then what it gets
  uint64_t* gathered;

  unsigned lane_ticket; // how often it has met lanes of its warp, for who looks at memory
  uint64_t steps;       // what it has done, in blocks of code
  uint64_t counted;     // of them
  uint64_t turn_end;    // the steps at which others come first

  unsigned lane() const {
    return number % kWarpSize;
  }
  /// Brings the end of its turn nearer, by what may be a loop that waits.
  void shorten_turn(uint64_t by) {
    turn_end = turn_end > steps + by ? turn_end - by : steps;
  }
  Warp& warp() const;
};

struct Warp {
  Thread* threads;
  unsigned there; // lanes that have a thread
  unsigned ready; // that can run
  unsigned tired; // that could, and have had their turn
  unsigned ended;
  unsigned waiting; // for other lanes
  unsigned active;  // that asked which lanes are
  unsigned first;   // the lane that runs first
  bool is_upward;   // whether the next ones follow upward
  // Of a lane, by another: the ticket up to which it knows what the other one did.
  unsigned known[kWarpSize][kWarpSize];

  unsigned alive() const {
    return there & ~ended;
  }
};

struct Block {
  uint3 index;
  unsigned size;    // in threads
  unsigned running; // the warp
  unsigned ready_warps;
  unsigned tired_warps;
  unsigned active_warps; // in which a lane asked which of them are
  unsigned at_barrier;
  unsigned at_grid_barrier;
  unsigned ended;
  unsigned epoch;  // how many barriers of the block are over
  unsigned rounds; // of turns since another block ran
  // A thread that gives way within one of its writes to memory, and which: a number that it has read
  // and changed is an old one then, unless an atomic operation did that.
  unsigned interrupted;
  unsigned writes_left; // until then; 0: it has been
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  SharedMemory shared;
};

inline Warp& Thread::warp() const {
  return block->warps[number / kWarpSize];
}

/// What tests choose.
struct Options {
  int64_t order = -1; // of warps and blocks; 0: their own; -1: another one for each launch
  uint64_t most_steps = 2'000'000'000; // of all threads of a launch, until one ends
  uint64_t most_blocks = 0;            // of a grid, along x; 0: as many as are asked for
  bool finds_races = true;
  bool may_read_absent_lanes = false;
  bool may_leave_before_barriers = false; // threads, for which the others then do not wait
};

/// A launch that ended, for who asked to hear of each.
struct Ran {
  const char* kernel;
  dim3 grid;
  dim3 block;
  uint64_t shared_bytes; // dynamic
  uint64_t read_bytes;   // of the device's memory, as accesses.h counts them
  uint64_t written_bytes;
};

class Machine {
 public:
  Options options;
  /// Called behind each launch, on its thread.
  void (*recorder)(const Ran*) = nullptr;

  void run(
      const char* kernel,
      const Configuration& configuration,
      void (*call)(void*),
      void* data,
      Range parameters);

  /// Suspends the thread that runs, which waits for what its `wait` says.
  void suspend();

  /// Ends the turn of the thread that runs, which may be waiting for others in a loop.
  void give_way();

  /// The text of an error: of which block and thread, if of one, what it did, and where.
  std::string described(
      const std::string& who, const std::string& what, const std::string& place) const;

  /// Counts what the thread that runs has done. Ends the launch where that is too much, at an address
  /// of its code, or where it waits.
  void check_steps(const void* code);

  /// Ends the launch. `place` is that of the thread that runs, if it is known.
  [[noreturn]] void fail(const std::string& what, std::optional<Place> place = {});

  /// The same for what a thread does at an address of its code.
  [[noreturn]] void fail_at(const std::string& what, const void* code);

  void meet(Thread& thread);
  void arrive(Thread& thread);
  void arrive_at_grid_barrier(Thread& thread);

  const Configuration& configuration() const {
    return *configuration_;
  }
  dim3 grid() const {
    return grid_;
  }
  Range parameters() const {
    return parameters_;
  }
  bool is_on_host_stack(const void* address) const;
  /// A child must not find the mutex held by a thread that it has not. A launch may start another
  /// program, to find a line of a source, and has it already.
  void hold() {
    if (!is_launching) {
      mutex_.lock();
    }
  }
  void let_go() {
    if (!is_launching) {
      mutex_.unlock();
    }
  }

  uint64_t launches() const {
    return launches_;
  }
  SharedLayout& shared_layout() {
    return layout_;
  }

 private:
  static thread_local bool is_launching;

  enum class Ended : uint8_t { kBlock, kStalled, kGaveWay, kLaunch };

  void check(const Configuration& configuration) const;
  bool all_are_at_barrier(const Block& block) const;
  void run_locked(
      const char* kernel,
      const Configuration& configuration,
      void (*call)(void*),
      void* data,
      Range parameters);
  void run_grid();
  Block* start_block(uint64_t number);
  void enter(Block& block);
  [[noreturn]] void leave(Ended why);

  Thread* next(Block& block);
  bool end_round(Block& block);
  Thread* take(Block& block, unsigned warp, unsigned lanes);
  static Thread* take(Block& block, Thread& thread);
  void begin_or_resume(Thread& next, Context* saved);
  static void thread_main();
  void ended(Thread& thread);
  void release(Block& block);
  bool settle_active(Block& block);
  bool settle_meeting(Warp& warp, unsigned mask, const char* name);
  void complete(Warp& warp, unsigned lanes);
  void make_ready(Thread& thread);
  void make_tired(Thread& thread);
  void give_over(Thread& thread);
  [[noreturn]] void fail_of_stall(Block& block);
  [[noreturn]] void fail_with(const std::string& what, const std::string& place);

  Stack take_stack();
  unsigned random(unsigned below);

  std::mutex mutex_;
  const char* kernel_ = nullptr;
  const Configuration* configuration_ = nullptr;
  dim3 grid_;
  void (*call_)(void*) = nullptr;
  void* data_ = nullptr;
  Range parameters_{};
  const char* launch_frame_ = nullptr;
  Stack host_stack_{nullptr, nullptr}; // where AddressSanitizer asks for it
  Context host_ = nullptr;
  Ended why_ = Ended::kBlock;
  std::string error_;
  uint64_t order_ = 0;           // of this launch
  uint64_t steps_ = 0;           // since a thread ended
  bool has_more_blocks_ = false; // than the one that runs
  uint64_t launches_ = 0;
  std::minstd_rand random_;
  SharedLayout layout_;
  std::vector<Stack> stacks_; // that no thread has
  std::vector<Stack> all_stacks_;
  std::vector<std::unique_ptr<Block>> resident_;
  std::vector<std::unique_ptr<Block>> spare_;
};

Machine& machine();

/// The thread of a kernel that runs, null on the host. Of the initial model: in a call of its own it
/// would take longer than the access that is looked at.
extern thread_local Thread* current __attribute__((tls_model("initial-exec")));

/// The thread that runs, where something may be asked of kernels alone; on the host throws.
Thread& running(const char* function);

/// "path:line" for an address of code: the innermost place that is not in torch's headers or ours.
std::string place_of_code(const void* code);

/// Whether a place is in torch's headers, or in ours.
bool is_of_torch(const Place& place);

/// "(1, 2, 3)"
std::string text_of(const uint3& index);

/// "path:line", with the path as short as the current folder makes it.
std::string text_of(const Place& place);

} // namespace torchext::cuda_on_host
