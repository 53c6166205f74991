#include "gateway/http/chunk_decoder.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace headgate::http;
using namespace std::literals;
using what = chunk_step::what;

namespace {

struct decoded
{
    std::string body;
    std::string code; // "done", "need_more", or the error's
    std::size_t consumed = 0;
    std::string trailers;

    bool operator==(const decoded&) const = default;
};

decoded decode(std::string_view bytes, std::size_t piece, const chunk_limits& limits)
{
    chunk_decoder decoder(limits);
    decoded out;
    std::string buffer; // fresh memory for each piece
    for (std::size_t begin = 0; begin < bytes.size(); begin += piece) {
        buffer = bytes.substr(begin, piece);
        std::string_view input = buffer;
        for (;;) {
            const auto step = decoder.next(input);
            out.consumed += step.consumed;
            out.body += step.data;
            input.remove_prefix(step.consumed);
            if (step.kind == what::data)
                continue;
            out.code = step.kind == what::need_more ? "need_more" : "done";
            if (step.kind == what::failed) {
                out.code = describe(decoder.error()).code;
                out.consumed = 0; // depends on the pieces
            }
            if (step.kind != what::need_more) {
                for (const auto& line : decoder.trailers().lines)
                    out.trailers += std::string(line.name) + "=" + std::string(line.value) + ";";
                return out;
            }
            break;
        }
    }
    return out;
}

// Decodes in one piece, byte by byte and in pieces of seven bytes: the result must not depend on it (A16).
decoded decode(std::string_view bytes, const chunk_limits& limits = {})
{
    const auto whole = decode(bytes, bytes.size() + 1, limits);
    for (const std::size_t piece : {1U, 2U, 7U}) {
        const auto other = decode(bytes, piece, limits);
        INFO(bytes.substr(0, 100));
        CHECK(other.body == whole.body);
        CHECK(other.code == whole.code);
        CHECK(other.consumed == whole.consumed);
        CHECK((whole.code == "done" ? other.trailers == whole.trailers : true));
    }
    return whole;
}

} // namespace

TEST_CASE("chunks: the whole data is returned, and bytes after the last chunk are not consumed")
{
    const auto out = decode("5\r\nhello\r\nA\r\n, chunked!\r\n0\r\n\r\nGET /");
    CHECK(out.body == "hello, chunked!");
    CHECK(out.code == "done");
    CHECK(out.consumed == 30);
    CHECK(decode("0\r\n\r\n").code == "done");
    CHECK(decode("000005\r\nhello\r\n00\r\n\r\n").body == "hello");
    CHECK(decode("5\r\nhel").code == "need_more");
}

TEST_CASE("A8: a chunk size is 1 to 16 hexadecimal digits, followed by CR LF or an extension")
{
    for (const auto bytes : {"\r\n"sv,
                             "x\r\n"sv,
                             "-1\r\n"sv,
                             "+1\r\n"sv,
                             "0x5\r\n"sv,
                             "5 \r\n"sv,
                             " 5\r\n"sv,
                             "5\t\r\n"sv,
                             "5g\r\n"sv,
                             "5,\r\n"sv,
                             "5\0\r\n"sv,
                             "00000000000000005\r\nhello"sv,
                             "FFFFFFFFFFFFFFFF\r\n"sv,
                             "8000000000000000\r\n"sv,
                             "5 a\r\n"sv,
                             "5 5\r\n"sv,
                             "5 =a\r\n"sv,
                             "5 ; \r\n"sv,
                             "5_0\r\n"sv,
                             ";a\r\n"sv,
                             "5\r\nhelloX\r\n"sv,
                             "5\r\nhello5\r\nhello\r\n0\r\n\r\n"sv,
                             "5\r\nhello\r\n\r\n"sv}) {
        INFO(bytes);
        CHECK(decode(bytes).code == "bad_chunk");
    }
    CHECK(decode("0000000000000005\r\nhello\r\n0\r\n\r\n").body == "hello");
    CHECK(decode("7fffffffffffffff\r\nx").code == "need_more");
}

TEST_CASE("A9: a bare LF or CR anywhere in the framing is refused")
{
    for (const auto bytes :
         {"5\nhello\r\n0\r\n\r\n", "5\rhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r0\r\n\r\n",
          "5\r\nhello\r\n0\n\r\n", "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n0\r\n\rX", "5;a\nhello\r\n0\r\n\r\n",
          "5;a\rhello\r\n", "5;a=b\nhello\r\n", "0\r\nA: b\n\r\n", "0\r\nA: b\r\n\n", "0\r\nA: b\rc\r\n\r\n", "0\r\r\n",
          "5\r\r\nhello\r\n0\r\n\r\n"}) {
        INFO(bytes);
        CHECK(decode(bytes).code == "bad_chunk");
    }
}

TEST_CASE("A10: CR or LF inside a quoted extension is refused; valid extensions are dropped")
{
    for (const auto bytes : {"5;a=\"x\r\ny\"\r\nhello\r\n0\r\n\r\n"sv,
                             "5;a=\"x\ny\"\r\n"sv,
                             "5;a=\"x\\\ny\"\r\n"sv,
                             "5;a=\"x\\\r\n\"\r\n"sv,
                             "5;a=\"x\0y\"\r\n"sv,
                             "5;\r\nhello"sv,
                             "5;=b\r\nhello"sv,
                             "5;a=\r\nhello"sv,
                             "5;a=\"b\"c\r\n"sv,
                             "5;a b\r\n"sv,
                             "5;a=b c\r\n"sv,
                             "5;a \r\n"sv,
                             "5;a=b \r\n"sv,
                             "5;a= \r\n"sv,
                             "5;a=\"b\" c\r\n"sv,
                             "5;a =\r\n"sv,
                             "5;a= =b\r\n"sv,
                             "5 \n;a\r\n"sv,
                             "5;a\r =b\r\n"sv,
                             "5;a=\"b\r\n"sv,
                             "5;;\r\n"sv,
                             "5; ;\r\n"sv}) {
        INFO(bytes);
        CHECK(decode(bytes).code == "bad_chunk");
    }
    const auto out = decode("5;a;b=c;d=\"e; \\\" f\";g=\"\"\r\nhello\r\n0;last\r\n\r\n");
    CHECK(out.code == "done");
    CHECK(out.body == "hello");
    for (const auto extension : {" ;a", "\t; a", "; a", ";a =b", ";a= b", ";a \t = \t \"b c\"", ";a ;b", ";a=b ;c",
                                 ";a=\"b\" ; c", " ; a = b ; c"}) {
        INFO(extension);
        const auto whole = decode("5" + std::string(extension) + "\r\nhello\r\n0" + extension + "\r\n\r\n");
        CHECK(whole.code == "done");
        CHECK(whole.body == "hello");
    }
}

TEST_CASE("A11: extensions and trailers are limited over the whole body")
{
    std::string many;
    for (int i = 0; i < 100; ++i)
        many += "1;" + std::string(50, 'a') + "\r\nx\r\n";
    CHECK(decode(many).code == "chunk_extensions_too_large");
    CHECK(decode("1;" + std::string(4000, 'a') + "\r\nx\r\n0\r\n\r\n").code == "done");
    CHECK(decode("1;" + std::string(4097, 'a')).code == "chunk_extensions_too_large");
    CHECK(decode("1;a=\"" + std::string(4097, ';')).code == "chunk_extensions_too_large");
    for (const std::string begin : {"1", "1;", "1;a", "1;a=", "1;a=b", "1;a=\"b\""}) {
        CHECK(decode(begin + std::string(5000, ' ')).code == "chunk_extensions_too_large");
        CHECK(decode("1;a\r\nx\r\n" + begin + std::string(5000, '\t')).code == "chunk_extensions_too_large");
    }

    CHECK(decode("0\r\nA: " + std::string(70000, 'a')).code == "trailers_too_large");
    const chunk_limits small{.extensions = 8, .trailers = 10, .trailer_fields = 2};
    CHECK(decode("0\r\nA: bcde\r\n\r\n", small).code == "trailers_too_large");
    CHECK(decode("0\r\nA: b\r\n\r\n", small).code == "done");
    CHECK(decode("0\r\nA:\r\nB:\r\nC:\r\n\r\n", {.trailers = 100, .trailer_fields = 2}).code == "trailers_too_large");
    CHECK(describe(http_error::trailers_too_large).status == 431);
    CHECK(describe(http_error::chunk_extensions_too_large).status == 400);
}

TEST_CASE("A12: trailers are kept separate from the headers")
{
    const auto out = decode("3\r\nabc\r\n0\r\nX-Sum: 12\r\nHost: evil\r\n\r\nrest");
    CHECK(out.code == "done");
    CHECK(out.body == "abc");
    CHECK(out.trailers == "X-Sum=12;Host=evil;");
    CHECK(out.consumed == 36);
    for (const auto bad : {"0\r\nA b: c\r\n\r\n", "0\r\nA: b\r\n c\r\n\r\n", "0\r\n A: b\r\n\r\n", "0\r\nA\r\n\r\n"})
        CHECK(decode(bad).code == "bad_chunk");
}

TEST_CASE("chunks: a decoder that is reset starts a new body")
{
    chunk_decoder decoder;
    CHECK(decoder.next("0\r\nA: b\r\n\r\n").kind == what::done);
    CHECK(decoder.next("more").kind == what::done);
    CHECK(decoder.next("more").consumed == 0);
    decoder.reset();
    CHECK(decoder.trailers().lines.empty());
    CHECK(decoder.next("zz").kind == what::failed);
    CHECK(decoder.next("0\r\n\r\n").kind == what::failed);
    decoder.reset();
    CHECK(decoder.next("0\r\n\r\n").kind == what::done);
}

TEST_CASE("chunks: the decoder reads the line that chunk_writer writes")
{
    chunk_line buffer;
    CHECK(format_chunk_line(0x1234, buffer) == "1234\r\n");
    CHECK(format_chunk_line(UINT64_MAX, buffer) == "ffffffffffffffff\r\n");
    CHECK(decode(std::string(format_chunk_line(3, buffer)) + "abc" + std::string(chunk_data_end) +
                 std::string(last_chunk))
              .body == "abc");
}
