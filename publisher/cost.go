package publisher

import "github.com/followpress/followpress/storage"

// Prices are the prices of a storage provider, in dollars.
type Prices struct {
	Put     float64 // per 1,000 requests that put or list
	Get     float64 // per 1,000 requests that get
	Storage float64 // per month and 10^9 bytes
}

// A Cost is the price of a run's requests and of storing the site, in dollars.
type Cost struct {
	Requests     float64 `json:"requests"`
	StorageMonth float64 `json:"storage_month"`
}

// Of is the cost of requests, by kind, and of storing so many bytes.
func (p Prices) Of(requests map[storage.Request]int, bytes int64) *Cost {
	puts := requests[storage.Put] + requests[storage.List] + requests[storage.SetUp]
	gets := requests[storage.Get] + requests[storage.Head]
	return &Cost{
		Requests:     float64(puts)/1000*p.Put + float64(gets)/1000*p.Get,
		StorageMonth: float64(bytes) / 1e9 * p.Storage,
	}
}
