package main

import (
	"runtime/debug"
	"testing"
)

// A program that `go install` or `go build` made knows its version.
func TestBuiltVersion(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}}
	for name, tt := range map[string]struct {
		info *debug.BuildInfo
		ok   bool
		want string
	}{
		"a release":         {&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: commit}, true, "v1.2.3"},
		"a commit":          {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: commit}, true, "0123456789ab"},
		"a changed commit":  {&debug.BuildInfo{Settings: append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"})}, true, "0123456789ab-dirty"},
		"outside a commit":  {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, true, "unversioned"},
		"without any notes": {nil, false, "unversioned"},
	} {
		if got := builtVersion(tt.info, tt.ok); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
