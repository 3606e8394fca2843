package usage

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// newRoot returns a program with two verbs and a family.
func newRoot() *cobra.Command {
	run := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "stele", SilenceErrors: true, SilenceUsage: true, RunE: run, Args: cobra.NoArgs}
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	root.AddGroup(&cobra.Group{ID: "self"})
	one := &cobra.Command{Use: "register", Args: OneArgument("the identifier"), RunE: run}
	one.Flags().String("to", "", "")
	one.Flags().Uint16("order", 0, "")
	one.Flags().Bool("reserve", false, "")
	Choices(one, "to", "https://", "http://")
	root.AddCommand(NeverFiles(one), NeverFiles(&cobra.Command{Use: "withdraw", Args: AtMostOne("the identifier"), RunE: run}),
		Family(&cobra.Command{Use: "user"}, &cobra.Command{Use: "ls", Args: NoArguments, RunE: run}))
	root.SetFlagErrorFunc(FlagError)
	Strict(root, "self")
	return root
}

func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"register ark:12345/x1":             "",
		"register":                          "the identifier is missing; see 'stele register --help'",
		"register a b":                      "2 arguments where one belongs, the identifier",
		"withdraw":                          "",
		"withdraw a b":                      "2 arguments where one belongs",
		"user":                              "",
		"user ls":                           "",
		"user ls x":                         `"x" is an argument where none belongs`,
		"user rm":                           `unknown command "rm"; there are ls`,
		"help none":                         `there is no command "none"`,
		"help remove":                       `there is no command "remove"; did you mean 'stele withdraw'?`,
		"completion none":                   `there is no command "completion none"`,
		"register a --url x":                "unknown flag: --url; did you mean '--to'?",
		"register a --oder 5":               "did you mean '--order'?",
		"register a --order x":              `--order is a whole number from 0 to 65535, and "x" is not`,
		"register a --order 70000":          "--order is a whole number from 0 to 65535",
		"register a --reserve=perhaps":      "--reserve is true or false",
		"remove":                            `unknown command "remove" for "stele"; did you mean 'stele withdraw'?`,
		"regster":                           "did you mean 'stele register'?",
		"something-that-is-not-like-a-verb": `unknown command "something-that-is-not-like-a-verb" for "stele"; see 'stele --help'`,
	} {
		root := newRoot()
		args := strings.Fields(line)
		root.SetArgs(args)
		err := root.ExecuteContext(t.Context())
		if err != nil && strings.HasPrefix(err.Error(), "unknown command") {
			if _, ok := errors.AsType[*Error](err); !ok {
				err = UnknownVerb(root, args, err)
			}
		}
		if _, ok := errors.AsType[*Error](err); want != "" && (!ok || !strings.Contains(err.Error(), want)) || want == "" && err != nil {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestGiven(t *testing.T) {
	root := newRoot()
	cmd, _, err := root.Find([]string{"register"})
	if err != nil {
		t.Fatal(err)
	}
	if Given(cmd) {
		t.Error("no flag was given")
	}
	if err := cmd.ParseFlags([]string{"--to=x"}); err != nil || !Given(cmd) || Given(cmd, "to") {
		t.Errorf("%v, %t, %t", err, Given(cmd), Given(cmd, "to"))
	}
}

func TestIsNear(t *testing.T) {
	for _, tt := range []struct {
		word, other string
		near        bool
	}{{"reg", "register", true}, {"re", "register", false}, {"regsiter", "register", true}, {"lss", "ls", true}, {"get", "set", true}, {"show", "mint", false}, {strings.Repeat("x", 100), "ls", false}} {
		if isNear(tt.word, tt.other) != tt.near {
			t.Errorf("%s and %s: near is %t", tt.word, tt.other, !tt.near)
		}
	}
}
