package apijson

import (
	"crypto/sha256"
	"encoding/hex"
)

// BookmarkDigest names a bookmark that an import expects to find: its SHA-256, or none.
func BookmarkDigest(held []byte) string {
	if held == nil {
		return "none"
	}
	sum := sha256.Sum256(held)
	return hex.EncodeToString(sum[:])
}
