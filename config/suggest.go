package config

import "slices"

// maxSuggestLen bounds the names that are compared: longer ones are no typos.
const maxSuggestLen = 64

// nearest returns the name most like word, or "" if none is near: at most one
// edit for every three letters.
func nearest(word string, names []string) string {
	if len(word) > maxSuggestLen {
		return ""
	}
	best, bestDist := "", max(1, len(word)/3)+1
	for _, name := range slices.Sorted(slices.Values(names)) {
		if d := distance(word, name); d < bestDist {
			best, bestDist = name, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours between two texts (optimal string alignment).
func distance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
