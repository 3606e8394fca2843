package get

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/scheme/all"
)

// TestFileName: whatever an identifier or a location has in it, the name is one of a file
// in this folder.
func TestFileName(t *testing.T) {
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	long := "urn:example:" + strings.Repeat("x", 400)
	for _, tt := range []struct{ id, location, want string }{
		{"urn:paradisec:AB1:001:A", "https://h/a.wav", "urn_paradisec_AB1_001_A.wav"},
		{"urn:paradisec:AB1:001:A", "https://h/a.wav?x=/../../y.sh", "urn_paradisec_AB1_001_A.wav"},
		{"urn:paradisec:AB1:001:A", "https://h/a", "urn_paradisec_AB1_001_A"},
		{"urn:paradisec:AB1:001:A", "https://h/a.toolongtobeone", "urn_paradisec_AB1_001_A"},
		{"urn:paradisec:AB1:001:A", "https://h/a.w%2Fv", "urn_paradisec_AB1_001_A"},
		{"urn:paradisec:AB1:001:A", "https://h/..", "urn_paradisec_AB1_001_A"},
		{"urn:paradisec:AB1:001:A", "ftp://h/a.tar.gz;type=i", "urn_paradisec_AB1_001_A"},
		{"urn:paradisec:AB1:001:a.WAV", "https://h/a.wav", "urn_paradisec_AB1_001_a.WAV"},
		{"urn:example:..%2F..%2Fetc%2Fpasswd", "https://h/", "urn_example_.._2F.._2Fetc_2Fpasswd"},
		{"10.5072/../../x", "https://h/", "10.5072_.._.._X"},
	} {
		id, err := schemes.Parse(tt.id)
		if err != nil {
			t.Fatal(err)
		}
		got := fileName(id, tt.location)
		if !strings.EqualFold(got, tt.want) || filepath.Base(got) != got || strings.HasPrefix(got, ".") {
			t.Errorf("%s from %s: %q, want %q", tt.id, tt.location, got, tt.want)
		}
	}
	one, _ := schemes.Parse(long + "1")
	two, _ := schemes.Parse(long + "2")
	a, b := fileName(one, "https://h/a.wav"), fileName(two, "https://h/a.wav")
	if a == b || len(a) > maxFileName || !strings.HasSuffix(a, ".wav") {
		t.Errorf("%q, %q", a, b)
	}
}

func TestOutputPath(t *testing.T) {
	t.Chdir(t.TempDir())
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := schemes.Parse("urn:example:a")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"there", "folder/urn_example_a.wav"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", "link"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		output string
		force  bool
		want   string // "": an error
	}{
		{"", false, "urn_example_a.wav"}, {"-", false, "-"}, {"new", false, "new"}, {"there", false, ""}, {"there", true, "there"}, {"link", false, ""}, {"link", true, "link"},
		{"folder", false, ""}, {"folder/", true, "folder/urn_example_a.wav"}, {"none/new", false, "none/new"},
	} {

		got, err := outputPath(tt.output, id, "https://h/a.wav", tt.force)
		if got != filepath.FromSlash(tt.want) || (err != nil) != (tt.want == "") || err != nil && stele.KindOf(err) != stele.Conflict {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
	}
}

func TestFetchable(t *testing.T) {
	for _, tt := range []struct {
		res  client.Result
		want string
	}{
		{client.Result{Location: "https://a/"}, "https://a/"},
		{client.Result{Location: "https://a/", Others: []string{"http://b/", "ftp://c/"}, Equals: []string{"ftp://c/"}}, "https://a/ ftp://c/"},
		{client.Result{Location: "rtsp://a/", Others: []string{"sftp://b/", "ftp://c/", "http://d/"}}, "ftp://c/"},
		{client.Result{Location: "rtsp://a/", Others: []string{"http://b/", "ftp://c/"}, Equals: []string{"ftp://c/"}}, "ftp://c/"},
		{client.Result{Location: "rtsp://a/"}, ""},
	} {
		if got := strings.Join(fetchable(&tt.res), " "); got != tt.want {
			t.Errorf("%+v: %q", tt.res, got)
		}
	}
}
