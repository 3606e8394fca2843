package main

import (
	"runtime/debug"
	"testing"
)

// A program that `go install` or `go build` made knows its version and its commit.
func TestBuiltFrom(t *testing.T) {
	made := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}}
	changed := append(made[:len(made):len(made)], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for name, tt := range map[string]struct {
		info *debug.BuildInfo
		ok   bool
		want build
	}{
		"go install of a release": {&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, true, build{Version: "v1.2.3"}},
		"a commit with tags":      {&debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20261118120000-0123456789ab"}, Settings: made}, true, build{Version: "v1.2.4-0.20261118120000-0123456789ab", Commit: "0123456789ab"}},
		"a commit without tags":   {&debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20261118120000-0123456789ab"}, Settings: made}, true, build{Version: release, Commit: "0123456789ab"}},
		"a commit":                {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: made}, true, build{Version: release, Commit: "0123456789ab"}},
		"a changed commit":        {&debug.BuildInfo{Settings: changed}, true, build{Version: release, Commit: "0123456789ab-dirty"}},
		"outside a commit":        {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, true, build{Version: release}},
		"without any notes":       {nil, false, build{Version: release}},
	} {
		if got := builtFrom(tt.info, tt.ok); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
