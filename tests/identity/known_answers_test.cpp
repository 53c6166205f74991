// The examples of the RFCs, as printed there.
#include "gateway/identity/base64url.hpp"
#include "gateway/identity/key_material.hpp"
#include "tests/identity/support/signer.hpp"

#include <doctest/doctest.h>

using namespace headgate::identity;
using namespace headgate::identity::testing;

namespace {

// {"iss":"joe", "exp":1300819380, "http://example.com/is_root":true}, as in RFC 7515 A.1 to A.3
const std::string payload =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

struct example
{
    const char* name;
    jwt_algorithm algorithm;
    std::string jwk;
    std::string token;
};

const example examples[] = {
    {"RFC 7515 A.1, HS256", jwt_algorithm::HS256,
     R"({"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"})",
     "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." + payload + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"},
    {"RFC 7515 A.2, RS256", jwt_algorithm::RS256,
     R"({"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJ)"
     "PMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUs"
     "LA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8"
     R"(q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"})",
     "eyJhbGciOiJSUzI1NiJ9." + payload +
         ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9"
         "CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_"
         "dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0ig"
         "cN_IoypGlUPQGe77Rw"},
    {"RFC 7515 A.3, ES256", jwt_algorithm::ES256,
     R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
     R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"})",
     "eyJhbGciOiJFUzI1NiJ9." + payload +
         ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"},
};

const std::string rfc8037_key = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const std::string rfc8037_text = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"; // "Example of Ed25519 ..."
const std::string rfc8037_signature =
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

} // namespace

TEST_CASE("known answers: the tokens of RFC 7515 A.1, A.2 and A.3 are valid until they expire")
{
    for (const auto& [name, algorithm, jwk, token] : examples) {
        CAPTURE(name);
        const auto verifier = verifier_of_jwks(R"({"keys":[)" + jwk + "]}", {algorithm});
        const auto result = verifier.verify(token, at_second(1'300'819'379));
        CHECK(name_of(result.state) == "valid");
        CHECK(result.claims.claim_text("iss") == "joe");
        CHECK(result.claims.claim_text("exp") == "1300819380");
        CHECK(result.claims.claim_text("http://example.com/is_root") == "true");
        CHECK(name_of(verifier.verify(token, at_second(1'300'819'380)).state) == "expired");
    }
}

TEST_CASE("known answers: the signature of RFC 8037 A.4 is verified; its payload is not JSON, so it is no token")
{
    const auto made = make_ed25519_key(*decode_base64url(rfc8037_key));
    REQUIRE(made.key);
    CHECK(verify_signature(*made.key, jwt_algorithm::EdDSA, rfc8037_text, *decode_base64url(rfc8037_signature)));
    CHECK_FALSE(
        verify_signature(*made.key, jwt_algorithm::EdDSA, rfc8037_text + "x", *decode_base64url(rfc8037_signature)));

    const auto verifier = verifier_of_jwks(R"({"keys":[{"kty":"OKP","crv":"Ed25519","x":")" + rfc8037_key + R"("}]})",
                                           {jwt_algorithm::EdDSA});
    CHECK(name_of(verifier.verify(rfc8037_text + "." + rfc8037_signature, at_second(0)).state) == "malformed");
}
