//! Rules of the repository: its book and its house.

mod book;
mod house;
