//! Runs a language service over a pair of streams.
//!
//! The framework's own transport is not used, for reasons that were each seen to hang or end a session:
//! it ends at the first malformed message, its queue fills up behind handlers that wait (and with it
//! `$/cancelRequest` and the client's replies), and it stops reading when the client does not. Here
//!
//! - each message is handed to its handler, and the handler polled once, before the next message is read:
//!   what a handler does before its first `await` is done in the order in which messages came, by
//!   construction;
//! - a handler that is not done by then goes on as a task of its own: any number of them can wait, for
//!   workers or for the client, without delaying the messages after them;
//! - what is sent goes into a queue that never blocks ([`crate::outgoing`]).

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncRead, BufReader};
use tower_lsp_server::jsonrpc::{Error, ErrorCode, Id, Request, Response};
use tower_lsp_server::{ClientSocket, ExitedError};
use tower_service::Service;

use crate::frames::{self, Frame};
use crate::halves;
use crate::outgoing::Outgoing;

/// Serves until the stream ends or `exit` comes.
///
/// Calls `seen` with each body before it is handled.
pub async fn serve<S>(
    input: impl AsyncRead + Unpin,
    outgoing: &Outgoing,
    mut service: S,
    socket: ClientSocket,
    mut seen: impl FnMut(&[u8]),
) where
    S: Service<Request, Response = Option<Response>, Error = ExitedError>,
    S::Future: Send + 'static,
{
    let (mut requests, mut replies) = socket.split();
    let to_client = outgoing.clone();
    let forward = tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            to_client.send(&request);
        }
    });
    let mut input = BufReader::with_capacity(64 * 1024, input);
    while let Some(frame) = frames::read(&mut input).await {
        let body = match frame {
            Frame::Body(body) => body,
            Frame::Junk(why) => {
                tracing::warn!("skipped {why}");
                outgoing.send(&Response::from_error(Id::Null, Error::parse_error()));
                continue;
            }
        };
        seen(&body);
        match Message::parse(&body) {
            Message::Request(request) => {
                let exit = request.method() == "exit";
                let ready = std::future::poll_fn(|context| service.poll_ready(context)).await;
                if ready.is_err() {
                    break;
                }
                dispatch(&mut service, request, outgoing);
                if exit {
                    break;
                }
            }
            Message::Reply(reply) => {
                // The sink only files the reply under its id; it is always ready.
                if replies.send(reply).await.is_err() {
                    break;
                }
            }
            Message::Bad(id, error) => {
                tracing::warn!("answered a message that is not JSON-RPC 2.0: {error}");
                outgoing.send(&Response::from_error(id, error));
            }
        }
    }
    forward.abort();
}

enum Message {
    Request(Request),
    Reply(Response),
    Bad(Id, Error),
}

impl Message {
    fn parse(body: &[u8]) -> Message {
        match serde_json::from_slice::<Request>(body) {
            Ok(request) if !request.method().is_empty() => return Message::Request(request),
            Err(error) if error.is_syntax() || error.is_eof() => {
                return match halves::replaced(body) {
                    Some(body) => {
                        tracing::warn!("read half a surrogate pair as U+FFFD");
                        Message::parse(&body)
                    }
                    None => Message::Bad(Id::Null, Error::parse_error()),
                };
            }
            // The framework reads a response as a request without a method.
            Ok(_) | Err(_) => {}
        }
        if let Ok(reply) = serde_json::from_slice::<Response>(body) {
            return Message::Reply(reply);
        }
        let id = serde_json::from_slice::<Value>(body)
            .ok()
            .and_then(|value| serde_json::from_value(value.get("id")?.clone()).ok())
            .unwrap_or(Id::Null);
        Message::Bad(id, Error::invalid_request())
    }
}

/// Starts the handler; one that is not done at its first `await` goes on by itself.
fn dispatch<S>(service: &mut S, request: Request, outgoing: &Outgoing)
where
    S: Service<Request, Response = Option<Response>, Error = ExitedError>,
    S::Future: Send + 'static,
{
    let id = request.id().cloned();
    let Ok(handler) = catch_unwind(AssertUnwindSafe(|| service.call(request))) else {
        return answer(outgoing, id, None);
    };
    let mut handler = Box::pin(AssertUnwindSafe(handler).catch_unwind());
    match poll_once(handler.as_mut()) {
        Poll::Ready(result) => answer(outgoing, id, result.ok()),
        Poll::Pending => {
            let outgoing = outgoing.clone();
            // Polled again at once by the runtime, which leaves its own waker.
            tokio::spawn(async move { answer(&outgoing, id, handler.await.ok()) });
        }
    }
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Sends what a handler returned; `None` is a handler that panicked.
fn answer(
    outgoing: &Outgoing,
    id: Option<Id>,
    result: Option<Result<Option<Response>, ExitedError>>,
) {
    match result {
        Some(Ok(Some(response))) => outgoing.send(&response),
        Some(Ok(None) | Err(_)) => {}
        None => {
            tracing::error!("a handler panicked; please report it with the log");
            if let Some(id) = id {
                let mut error = Error::new(ErrorCode::InternalError);
                error.message = "internal error, please report it".into();
                outgoing.send(&Response::from_error(id, error));
            }
        }
    }
}
