// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>
#include <translate/compression.hpp>

#include <cstddef>
#include <fstream>
#include <ios>
#include <stdexcept>
#include <utility>
#include <vector>

#ifdef SLUICE_ZLIB
#include <zlib.h>
#endif
#ifdef SLUICE_ZSTD
#include <zstd.h>
#endif

namespace translate {

namespace {

#ifdef SLUICE_ZLIB
constexpr bool has_gzip = true;
#else
constexpr bool has_gzip = false;
#endif
#ifdef SLUICE_ZSTD
constexpr bool has_zstd = true;
#else
constexpr bool has_zstd = false;
#endif

Format available(Format format, std::filesystem::path const& file) {
  if ((format == Format::gzip && !has_gzip) || (format == Format::zstd && !has_zstd))
    throw text::InputError(file.string() + ": this program was built without " +
                           (format == Format::gzip ? "zlib (Debian: zlib1g-dev)" : "zstd (Debian: libzstd-dev)"));
  return format;
}

Format named(std::filesystem::path const& file) {
  auto const ending = file.extension();
  return ending == ".gz" ? Format::gzip : ending == ".zst" ? Format::zstd : Format::plain;
}

/// Reads a compressed file; `Codec` makes text of it.
template <class Codec>
class Decompressing final : public TextBuffer {
 public:
  explicit Decompressing(std::filesystem::path const& file)
      : file_(file, std::ios::binary), in_(std::size_t{1} << 16), out_(std::size_t{1} << 18) {
    if (!file_) throw text::InputError(file.string() + ": cannot be opened");
  }

 protected:
  /// A stream that throws here becomes bad.
  int_type underflow() override {
    std::size_t count = 0;
    while (count == 0) {
      if (next_ == have_) {
        file_.read(in_.data(), static_cast<std::streamsize>(in_.size()));
        next_ = 0, have_ = static_cast<std::size_t>(file_.gcount());
        if (file_.bad()) fail("cannot be read");
        if (have_ == 0 && codec_.within()) fail("ends too early: it was cut off");
        if (have_ == 0) return traits_type::eof();
      }
      auto const [used, made] = codec_.run({in_.data() + next_, have_ - next_}, out_);
      if (used + made == 0) fail("is damaged");
      next_ += used, count = made;
    }
    setg(out_.data(), out_.data(), out_.data() + count);
    return traits_type::to_int_type(out_.front());
  }

 private:
  [[noreturn]] void fail(char const* what) {
    problem_ = what;
    throw std::runtime_error(what);
  }

  std::ifstream file_;
  std::vector<char> in_, out_;
  std::size_t next_ = 0, have_ = 0;  // of in_
  Codec codec_;
};

/// Bytes read and written; none of either: the data are damaged.
using Moved = std::pair<std::size_t, std::size_t>;

#ifdef SLUICE_ZLIB
class Inflate {
 public:
  Inflate() {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  Inflate(Inflate const&) = delete;
  Inflate& operator=(Inflate const&) = delete;
  ~Inflate() { inflateEnd(&stream_); }

  bool within() const { return within_; }
  Moved run(std::string_view from, std::vector<char>& to) {
    if (!within_) inflateReset(&stream_);
    within_ = true;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));
    stream_.avail_in = static_cast<uInt>(from.size());
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = static_cast<uInt>(to.size());
    auto const code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) within_ = false;
    else if (code != Z_OK) return {0, 0};
    return {from.size() - stream_.avail_in, to.size() - stream_.avail_out};
  }

 private:
  z_stream stream_{};
  bool within_ = false;  // a member
};

std::string gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  std::string member(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(member.data());
  stream.avail_out = static_cast<uInt>(member.size());
  auto const code = deflate(&stream, Z_FINISH);
  member.erase(member.size() - stream.avail_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) throw std::runtime_error("gzip: the output cannot be compressed");
  return member;
}
#endif

#ifdef SLUICE_ZSTD
class Unzstd {
 public:
  Unzstd() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  Unzstd(Unzstd const&) = delete;
  Unzstd& operator=(Unzstd const&) = delete;
  ~Unzstd() { ZSTD_freeDStream(stream_); }

  bool within() const { return within_; }
  Moved run(std::string_view from, std::vector<char>& to) {
    ZSTD_inBuffer in{from.data(), from.size(), 0};
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    auto const left = ZSTD_decompressStream(stream_, &out, &in);
    if (ZSTD_isError(left) != 0) return {0, 0};
    within_ = left != 0;
    return {in.pos, out.pos};
  }

 private:
  ZSTD_DStream* stream_;
  bool within_ = false;  // a frame
};

std::string zstd(std::string_view text) {
  auto* const context = ZSTD_createCCtx();
  if (context == nullptr) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  auto const size = ZSTD_compress2(context, frame.data(), frame.size(), text.data(), text.size());
  ZSTD_freeCCtx(context);
  if (ZSTD_isError(size) != 0) throw std::runtime_error("zstd: the output cannot be compressed");
  frame.erase(size);
  return frame;
}
#endif

}  // namespace

Format format_of_name(std::filesystem::path const& file) { return available(named(file), file); }

Format format_of_file(std::filesystem::path const& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string first(4, '\0');
  stream.read(first.data(), 4);
  first.resize(static_cast<std::size_t>(stream.gcount()));
  auto const is = first.starts_with("\x1F\x8B")              ? Format::gzip
                  : first == std::string("\x28\xB5\x2F\xFD") ? Format::zstd
                                                             : Format::plain;
  if (auto const name = named(file); name != Format::plain && is != name && !first.empty())
    throw text::InputError(file.string() + ": is no " + (name == Format::gzip ? "gzip" : "zstd") +
                           " file, though its name says so");
  return available(is, file);
}

std::string compressed(Format format, std::string_view text) {
  switch (format) {
#ifdef SLUICE_ZLIB
    case Format::gzip: return gzip(text);
#endif
#ifdef SLUICE_ZSTD
    case Format::zstd: return zstd(text);
#endif
    default: return std::string(text);
  }
}

std::unique_ptr<TextBuffer> open_compressed(std::filesystem::path const& file, Format format) {
  switch (available(format, file)) {
#ifdef SLUICE_ZLIB
    case Format::gzip: return std::make_unique<Decompressing<Inflate>>(file);
#endif
#ifdef SLUICE_ZSTD
    case Format::zstd: return std::make_unique<Decompressing<Unzstd>>(file);
#endif
    default: throw std::logic_error("open_compressed: a plain file");
  }
}

}  // namespace translate
