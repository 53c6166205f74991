// Owners for OpenSSL objects, and a guard for its error queue.
#pragma once

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <memory>
#include <string_view>

namespace headgate::identity {

template <auto Free>
struct freed_by
{
    template <class T>
    void operator()(T* object) const
    {
        Free(object);
    }
};

template <class T, auto Free>
using openssl_ptr = std::unique_ptr<T, freed_by<Free>>;

using bignum = openssl_ptr<BIGNUM, BN_free>;

inline const unsigned char* bytes_of(std::string_view text)
{
    return reinterpret_cast<const unsigned char*>(text.data());
}

inline bignum to_bignum(std::string_view big_endian)
{
    return bignum(BN_bin2bn(bytes_of(big_endian), static_cast<int>(big_endian.size()), nullptr));
}

// Restores OpenSSL's error queue at the end of a scope. A refused key or signature adds errors that a TLS read on the
// same thread would take for its own.
class quiet_errors
{
public:
    quiet_errors() { ERR_set_mark(); }
    ~quiet_errors() { ERR_pop_to_mark(); }
    quiet_errors(const quiet_errors&) = delete;
    quiet_errors& operator=(const quiet_errors&) = delete;
};

} // namespace headgate::identity
