package deposit

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The examples of "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)", Amazon S3 API Reference.
func TestSign(t *testing.T) {
	keys := &s3Keys{access: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	now := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		method, path, query, content string
		headers                      map[string]string
		want                         string
	}{
		{"GET", "/test.txt", "", "", map[string]string{"Range": "bytes=0-9"}, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"PUT", "/test$file.text", "", "Welcome to Amazon S3.", map[string]string{"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY"}, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"GET", "/", "lifecycle=", "", nil, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"GET", "/", queryText(url.Values{"prefix": {"J"}, "max-keys": {"2"}}), "", nil, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		r, err := http.NewRequest(c.method, "https://examplebucket.s3.amazonaws.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = c.path, escaped(c.path, false), c.query
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
		keys.sign(r, "us-east-1", sumOf([]byte(c.content)), now)
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+c.want) || !strings.HasPrefix(got, "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=") {
			t.Errorf("%s %s: %s", c.method, c.path, got)
		}
	}
}
