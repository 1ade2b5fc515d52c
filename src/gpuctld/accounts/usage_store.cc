#include "gpuctld/accounts/usage_store.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

namespace {

// The key is in the order in which sums are told, so nothing is sorted for them.
constexpr const char* kTable = R"(
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA temp_store = MEMORY;
CREATE TABLE IF NOT EXISTS used (
  span INTEGER NOT NULL, start INTEGER NOT NULL, slice TEXT NOT NULL, uid INTEGER NOT NULL, gpu TEXT NOT NULL,
  sm_s REAL NOT NULL, work_s REAL NOT NULL, waited_s REAL NOT NULL, memory_byte_s REAL NOT NULL,
  launches INTEGER NOT NULL, bursts INTEGER NOT NULL, evictions INTEGER NOT NULL,
  joules REAL NOT NULL DEFAULT 0,
  PRIMARY KEY (uid, slice, gpu, span, start)) WITHOUT ROWID;
)";

constexpr const char* kOnConflict = R"(
ON CONFLICT DO UPDATE SET sm_s = sm_s + excluded.sm_s, work_s = work_s + excluded.work_s,
  waited_s = waited_s + excluded.waited_s, memory_byte_s = memory_byte_s + excluded.memory_byte_s,
  launches = launches + excluded.launches, bursts = bursts + excluded.bursts,
  evictions = evictions + excluded.evictions, joules = joules + excluded.joules)";

constexpr const char* kSums =
    "sum(sm_s), sum(work_s), sum(waited_s), sum(memory_byte_s), sum(launches), sum(bursts), sum(evictions), "
    "sum(joules)";

/// Another program that reads the file, such as a backup, may hold it for so long.
constexpr int kOthersMayHoldItMs = 1000;

/// A statement with its parameters, which are numbered from 1.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& text) {
    ::sqlite3_prepare_v2(database, text.c_str(), -1, &statement_, nullptr);
  }
  ~Statement() { ::sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  explicit operator bool() const { return statement_ != nullptr; }

  void bind(int at, std::int64_t value) { ::sqlite3_bind_int64(statement_, at, value); }
  void bind(int at, double value) { ::sqlite3_bind_double(statement_, at, value); }
  void bind(int at, const std::string& value) {
    ::sqlite3_bind_text(statement_, at, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  }
  /// SQLITE_ROW, SQLITE_DONE, or an error.
  int step() { return ::sqlite3_step(statement_); }
  void reset() { ::sqlite3_reset(statement_); }
  std::int64_t integer(int at) const { return ::sqlite3_column_int64(statement_, at); }
  bool is_null(int at) const { return ::sqlite3_column_type(statement_, at) == SQLITE_NULL; }
  double number(int at) const { return ::sqlite3_column_double(statement_, at); }
  std::string text(int at) const {
    const auto* bytes = reinterpret_cast<const char*>(::sqlite3_column_text(statement_, at));
    return bytes == nullptr ? "" : std::string(bytes, static_cast<std::size_t>(::sqlite3_column_bytes(statement_, at)));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

/// Leaves those with the most SM time; what the others used becomes part of `others`.
void keep_most(Accounts& accounts, std::size_t most, Accounts& others) {
  if (accounts.size() <= most) return;
  const std::size_t gone = accounts.size() - most;
  std::vector<std::pair<double, AccountKey>> by_time;
  for (const auto& [key, used] : accounts) by_time.emplace_back(used.sm_s, key);
  std::ranges::nth_element(by_time, by_time.begin() + static_cast<std::ptrdiff_t>(gone));
  for (std::size_t i = 0; i < gone; ++i) {
    const auto found = accounts.find(by_time[i].second);
    others[{UsageStore::kOthers, found->first.uid, found->first.gpu}] += found->second;
    accounts.erase(found);
  }
}

}  // namespace

void UsageStore::Close::operator()(sqlite3* database) const {
  ::sqlite3_close_v2(database);
}

StoreError UsageStore::problem() const {
  const int code = ::sqlite3_errcode(database_.get());
  return {std::string(::sqlite3_db_filename(database_.get(), "main")) + ": " + ::sqlite3_errmsg(database_.get()),
          code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR, code == SQLITE_FULL};
}

StoreResult<void> UsageStore::run(const char* statements) {
  if (::sqlite3_exec(database_.get(), statements, nullptr, nullptr, nullptr) != SQLITE_OK) return problem();
  return {};
}

StoreResult<UsageStore> UsageStore::open(const std::string& name, std::int64_t most_bytes) {
  // SQLite would refuse links anywhere in the name. /var may be one.
  std::error_code error;
  const std::filesystem::path given = std::filesystem::absolute(name, error);
  const std::filesystem::path directory = std::filesystem::canonical(given.parent_path(), error);
  if (error) return StoreError{.message = name + ": " + error.message()};
  const std::string file = directory / given.filename();
  {
    // SQLite would make it readable for others. Closed before SQLite opens it: its locks would go with this one.
    const ipc::UniqueFd made(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!made) return StoreError{.message = file + ": " + std::strerror(errno)};
  }
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX;
  const int opened = ::sqlite3_open_v2(file.c_str(), &database, flags, nullptr);
  UsageStore store(database, most_bytes);
  if (opened != SQLITE_OK) return StoreError{.message = file + ": " + ::sqlite3_errstr(opened)};
  ::sqlite3_busy_timeout(database, kOthersMayHoldItMs);
  if (auto ready = store.run(kTable); !ready) return ready.error();
  // A daemon that did not count energy made the file.
  const auto counts = store.one("SELECT 1 FROM pragma_table_info('used') WHERE name = 'joules'", {});
  if (!counts) return counts.error();
  if (!*counts)
    if (auto added = store.run("ALTER TABLE used ADD COLUMN joules REAL NOT NULL DEFAULT 0"); !added)
      return added.error();
  const auto page = store.one("PRAGMA page_size", {});
  if (!page) return page.error();
  if (auto bounded =
          store.run(("PRAGMA max_page_count = " + std::to_string(most_bytes / page->value_or(4096))).c_str());
      !bounded)
    return bounded.error();
  return store;
}

/// `body` has the store do things that are done all, or not at all.
template <class Body>
StoreResult<void> UsageStore::at_once(Body body) {
  if (auto begun = run("BEGIN IMMEDIATE"); !begun) return begun;
  StoreResult<void> done = body();
  if (done) done = run("COMMIT");
  if (!done) (void)run("ROLLBACK");
  return done;
}

StoreResult<void> UsageStore::add(const Accounts& accounts, std::int64_t time_s) {
  const Span& span = kSpans.front();
  return at_once([&]() -> StoreResult<void> {
    Statement insert(
        database_.get(),
        std::string("INSERT INTO used VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)") + kOnConflict);
    if (!insert) return problem();
    for (const auto& [key, used] : accounts) {
      insert.bind(1, span.seconds);
      insert.bind(2, time_s / span.seconds * span.seconds);
      insert.bind(3, key.slice);
      insert.bind(4, std::int64_t{key.uid});
      insert.bind(5, key.gpu);
      insert.bind(6, used.sm_s);
      insert.bind(7, used.work_s);
      insert.bind(8, used.waited_s);
      insert.bind(9, used.memory_byte_s);
      insert.bind(10, used.launches);
      insert.bind(11, used.bursts);
      insert.bind(12, used.evictions);
      insert.bind(13, used.joules);
      if (insert.step() != SQLITE_DONE) return problem();
      insert.reset();
    }
    return {};
  });
}

bool UsageStore::large() {
  const auto pages = one("PRAGMA page_count", {}), bytes = one("PRAGMA page_size", {});
  return pages && bytes && pages->value_or(0) * bytes->value_or(0) > most_bytes_ / 2;
}

StoreResult<Accounts> UsageStore::sums(const UsageQuestion& question, std::size_t most, const Accounts& more) {
  std::string text = std::string("SELECT uid, slice, gpu, ") + kSums + " FROM used WHERE 1";
  if (question.since) text += " AND start + span > ?1";
  if (question.until) text += " AND start < ?2";
  if (question.slice && *question.slice != "/")
    text += " AND (slice = ?3 OR substr(slice, 1, length(?3) + 1) = ?3 || '/')";
  if (question.uid) text += " AND uid = ?4";
  if (question.gpu) text += " AND gpu = ?5";
  Statement select(database_.get(), text + " GROUP BY uid, slice, gpu");
  if (!select) return problem();
  // What the text does not name is not bound.
  if (question.since) select.bind(1, *question.since);
  if (question.until) select.bind(2, *question.until);
  if (question.slice) select.bind(3, *question.slice);
  if (question.uid) select.bind(4, std::int64_t{*question.uid});
  if (question.gpu) select.bind(5, *question.gpu);
  Accounts sums, others;
  int row = select.step();
  for (; row == SQLITE_ROW; row = select.step()) {
    sums[{select.text(1), static_cast<std::uint32_t>(select.integer(0)), select.text(2)}] = {
        .sm_s = select.number(3),
        .work_s = select.number(4),
        .waited_s = select.number(5),
        .memory_byte_s = select.number(6),
        .joules = select.number(10),
        .launches = select.integer(7),
        .bursts = select.integer(8),
        .evictions = select.integer(9)};
    if (sums.size() >= 2 * most) keep_most(sums, most, others);
  }
  if (row != SQLITE_DONE) return problem();
  for (const auto& [key, used] : more) sums[key] += used;
  keep_most(sums, most, others);
  for (const auto& [key, used] : others) sums[key] += used;
  return sums;
}

StoreResult<void> UsageStore::with(const std::string& text, std::initializer_list<std::int64_t> bound) {
  auto done = one(text, bound);
  if (!done) return done.error();
  return {};
}

/// The number in the first row of what `text` selects, if there is one.
StoreResult<std::optional<std::int64_t>> UsageStore::one(const std::string& text,
                                                         std::initializer_list<std::int64_t> bound) {
  Statement statement(database_.get(), text);
  if (!statement) return problem();
  for (int at = 1; const std::int64_t value : bound) statement.bind(at++, value);
  const int row = statement.step();
  if (row != SQLITE_ROW && row != SQLITE_DONE) return problem();
  if (row == SQLITE_DONE || statement.is_null(0)) return std::optional<std::int64_t>();
  return std::optional(statement.integer(0));
}

StoreResult<void> UsageStore::tidy(std::int64_t time_s, std::int64_t most_of_user) {
  if (auto erased = with("DELETE FROM used WHERE start < ?1", {time_s - kSpans.back().kept_s}); !erased) return erased;
  for (std::size_t i = 0; i + 1 < kSpans.size(); ++i) {
    const Span& to = kSpans[i + 1];
    const std::int64_t before = (time_s - kSpans[i].kept_s) / to.seconds * to.seconds;
    if (auto moved = move_up(kSpans[i], to, before); !moved) return moved;
  }
  return bound_users(most_of_user);
}

/// The rows that `from` names become part of those that `as` says. They are deleted before these are added to, for a
/// file that may not grow.
StoreResult<void> UsageStore::add_up(const std::string& as, const std::string& from,
                                     std::initializer_list<std::int64_t> bound) {
  return at_once([&]() -> StoreResult<void> {
    const std::string rows = " FROM used WHERE " + from;
    for (const std::string& text :
         {"CREATE TEMP TABLE sums AS SELECT " + as + ", " + kSums + rows + " GROUP BY 1, 2, 3, 4, 5", "DELETE" + rows,
          std::string("INSERT INTO used SELECT * FROM temp.sums WHERE 1") + kOnConflict,
          std::string("DROP TABLE temp.sums")})
      if (auto done = with(text, bound); !done) return done;
    return {};
  });
}

/// One long span after the other: each takes little memory.
StoreResult<void> UsageStore::move_up(const Span& from, const Span& to, std::int64_t before) {
  for (;;) {
    const auto start =
        one("SELECT min(start) / ?3 * ?3 FROM used WHERE span = ?1 AND start < ?2", {from.seconds, before, to.seconds});
    if (!start) return start.error();
    if (!*start) return {};
    const auto moved = add_up("?3, ?2, slice, uid, gpu", "span = ?1 AND start >= ?2 AND start < ?2 + ?3",
                              {from.seconds, **start, to.seconds});
    if (!moved) return moved;
  }
}

StoreResult<void> UsageStore::bound_users(std::int64_t most) {
  const std::string apart = std::string("slice <> '") + kOthers + "'";
  for (std::optional<std::int64_t> after = -1;;) {
    const auto uid =
        one("SELECT uid FROM used WHERE uid > ?1 AND " + apart + " GROUP BY uid HAVING count(*) > ?2 LIMIT 1",
            {*after, most});
    if (!uid) return uid.error();
    if (!*uid) return {};
    const auto latest = one(
        "SELECT start FROM used WHERE uid = ?1 AND " + apart + " ORDER BY start DESC LIMIT 1 OFFSET ?2", {**uid, most});
    if (!latest) return latest.error();
    const auto bounded = add_up(std::string("span, start, '") + kOthers + "', uid, gpu",
                                "uid = ?1 AND start <= ?2 AND " + apart, {**uid, latest->value_or(-1)});
    if (!bounded) return bounded;
    after = *uid;
  }
}

}  // namespace gpuctl::daemon
